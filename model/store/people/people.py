"""People and their faces in the store: enrol, read, change, delete."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, select, update

from sameface.model.errors import FaceNotFound, PersonNotFound
from sameface.model.faces import Floats
from sameface.model.store.access.audit import Entry, record_entry
from sameface.model.store.changes import record_changes
from sameface.model.store.collections import enter_collection, has_quota, refuse_gone, refuse_over_quota
from sameface.model.store.databases.database import Database
from sameface.model.store.databases.face_rows import read_embeddings
from sameface.model.store.databases.tables import faces, people
from sameface.model.store.people.newcomers import find_known, find_new, find_people, insert_newcomers
from sameface.model.store.records import (
    Collection,
    NewFace,
    NewPerson,
    Person,
    RememberedResponse,
    StoredFace,
)


class People:
    """The people of all collections."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def enroll(
        self,
        collection: Collection,
        newcomers: Sequence[NewPerson],
        responses: Sequence[RememberedResponse] = (),
    ) -> dict[str, RememberedResponse]:
        """Enrol all newcomers or none, and remember `responses`: none, or one for each newcomer.

        A newcomer whose idempotency key was used meanwhile is not enrolled; the response that was remembered
        for it is returned, by its key.
        """
        with self._database.writing(alone=has_quota("faces")) as connection:
            head = enter_collection(connection, collection)
            keys = [response.idempotency_key for response in responses]
            ids = [newcomer.person_id for newcomer in newcomers]
            known, earlier = find_known(connection, collection, ids, keys)
            if earlier:
                pairs = zip(newcomers, responses, strict=True)
                newcomers = [new for new, response in pairs if response.idempotency_key not in earlier]
                responses = [each for each in responses if each.idempotency_key not in earlier]
            refuse_over_quota(connection, "faces", sum(len(newcomer.faces) for newcomer in newcomers))
            new = find_new(collection, known.keys(), newcomers)
            insert_newcomers(connection, collection, known, newcomers, new, responses, head)
        return earlier

    def get(self, collection: Collection, person_id: str) -> Person:
        """A person with all faces."""
        which = (people.c.collection == collection.key) & (people.c.person_id == person_id)
        with self._database.reading() as connection:
            found = read_people(connection, which, 1)
        if not found:
            raise PersonNotFound(f"There is no person {person_id!r} in {collection.name!r}.")
        return found[0]

    def page(self, collection: Collection, limit: int, after: str = "") -> list[Person]:
        """Up to `limit` people by id, from the first whose id is greater than `after`."""
        which = (people.c.collection == collection.key) & (people.c.person_id > after)
        with self._database.reading() as connection:
            return read_people(connection, which, limit)

    def whole_page(self, collection: Collection, limit: int, after: str = "") -> list[NewPerson]:
        """The people of `page` with embeddings and crops, to enrol elsewhere."""
        with self._database.reading() as connection:
            return read_whole_people(connection, collection, limit, after)

    def update(self, collection: Collection, person_id: str, values: dict[str, Any]) -> None:
        """Set a person's name, metadata or both."""
        with self._database.writing() as connection:
            person = find_person(connection, collection, person_id)
            if values:
                connection.execute(update(people).where(people.c.key == person).values(values))
            revision = record_changes(connection, collection, "update", [(person, None)])
            what = {"person_id": person_id, "revision": revision, "details": {"changed": sorted(values)}}
            record_entry(connection, Entry.about(collection, "update_person", **what))

    def delete(self, collection: Collection, person_id: str) -> None:
        """Delete a person with all faces and crops."""
        with self._database.writing() as connection:
            person = find_person(connection, collection, person_id)
            revision, gone = remove_person(connection, collection, person)
            record_entry(connection, describe_forgotten(collection, person_id, revision, gone))
        self._database.forget_log_soon()

    def delete_face(self, collection: Collection, person_id: str, face_id: str) -> None:
        """Delete one face of a person."""
        with self._database.writing() as connection:
            person = find_person(connection, collection, person_id)
            gone = connection.execute(
                delete(faces)
                .where((faces.c.person == person) & (faces.c.face_id == face_id))
                .returning(faces.c.key)
            ).scalar_one_or_none()
            if gone is None:
                raise FaceNotFound(f"The person {person_id!r} has no face {face_id!r}.")
            revision = record_changes(connection, collection, "delete", [(person, gone)], faces=-1)
            what = {"person_id": person_id, "revision": revision, "details": {"face_ids": [face_id]}}
            record_entry(connection, Entry.about(collection, "forget_face", **what))
        self._database.forget_log_soon()

    def existing(self, collection: Collection, person_ids: Sequence[str]) -> set[str]:
        """Those of the ids that are people of the collection."""
        with self._database.reading() as connection:
            return set(find_people(connection, collection, person_ids))

    def embeddings_of(
        self, collection: Collection, person_ids: Sequence[str]
    ) -> dict[str, dict[str, Floats]]:
        """By person id and face id: the embeddings of these people's faces."""
        wanted = (
            select(people.c.person_id, faces.c.face_id, faces.c.embedding)
            .join(people, people.c.key == faces.c.person)
            .where((people.c.collection == collection.key) & people.c.person_id.in_(person_ids))
            .order_by(faces.c.key)
        )
        found: dict[str, dict[str, Floats]] = {person_id: {} for person_id in person_ids}
        with self._database.reading() as connection:
            for person_id, face_id, embedding in connection.execute(wanted):
                found[person_id][face_id] = read_embeddings(embedding, 1, collection.dimension)[0]
        return found


# Inside the caller's transaction.


def find_person(connection: Connection, collection: Collection, person_id: str) -> int:
    """The key of a person to change; raises if the person or the collection is gone."""
    refuse_gone(connection, collection)
    found = find_people(connection, collection, [person_id])
    if not found:
        raise PersonNotFound(f"There is no person {person_id!r} in {collection.name!r}.")
    return found[person_id]


def remove_person(connection: Connection, collection: Collection, person: int) -> tuple[int, int]:
    """Delete a person with all faces and crops; returns the collection's revision and the number of faces."""
    gone = connection.execute(select(faces.c.key).where(faces.c.person == person)).scalars().all()
    connection.execute(delete(people).where(people.c.key == person))
    changed = [(person, face) for face in gone] or [(person, None)]
    fewer = {"people": -1, "faces": -len(gone)}
    return record_changes(connection, collection, "delete", changed, **fewer), len(gone)


def describe_forgotten(collection: Collection, person_id: str, revision: int, count: int) -> Entry:
    """The entry of the audit for a person who was deleted with `count` faces."""
    what = {"person_id": person_id, "revision": revision, "details": {"faces": count}}
    return Entry.about(collection, "forget_person", **what)


def read_people(connection: Connection, which: ColumnElement[bool], limit: int) -> list[Person]:
    """Up to `limit` people for whom the condition `which` holds, by id, with their faces."""
    rows = connection.execute(select(people).where(which).order_by(people.c.person_id).limit(limit)).all()
    owned: dict[int, list[StoredFace]] = {row.key: [] for row in rows}
    wanted = select(faces.c.person, faces.c.face_id, faces.c.quality, faces.c.photo, faces.c.created_at)
    for row in connection.execute(wanted.where(faces.c.person.in_(owned)).order_by(faces.c.key)):
        owned[row.person].append(StoredFace(row.face_id, row.quality, row.photo, row.created_at))
    return [
        Person(row.key, row.person_id, row.name, row.metadata, row.created_at, owned[row.key]) for row in rows
    ]


def read_whole_people(
    connection: Connection, collection: Collection, limit: int, after: str = ""
) -> list[NewPerson]:
    """Up to `limit` people by id, after the id `after`, with embeddings and crops, to enrol elsewhere."""
    which = (people.c.collection == collection.key) & (people.c.person_id > after)
    rows = connection.execute(select(people).where(which).order_by(people.c.person_id).limit(limit)).all()
    owned: dict[int, list[NewFace]] = {row.key: [] for row in rows}
    for row in connection.execute(select(faces).where(faces.c.person.in_(owned)).order_by(faces.c.key)):
        owned[row.person].append(restore_face(row, collection))
    return [
        NewPerson(row.person_id, owned[row.key], row.name, row.metadata, created_at=row.created_at)
        for row in rows
    ]


def restore_face(row: Any, collection: Collection) -> NewFace:
    """A row of `faces` as a face to enrol elsewhere."""
    [embedding] = read_embeddings(row.embedding, 1, collection.dimension)
    return NewFace(
        row.face_id,
        embedding,
        row.quality,
        row.photo,
        row.crop,
        created_at=row.created_at,
        details=row.details,
    )
