"""The durable truth of who is enrolled: SQLite in WAL mode, through SQLAlchemy Core."""

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import Connection, bindparam, delete, insert, select, update

from sameface.model.errors import AlreadyExists, CollectionNotFound, FaceNotFound, PersonNotFound
from sameface.model.faces import Floats, Keys
from sameface.model.files import exclusive_lock
from sameface.model.store.people import (
    add_newcomers,
    count_up,
    faces_of,
    find_answers,
    find_person,
    hidden,
    read_people,
    record_changes,
    refuse_gone,
    remember,
    to_block,
)
from sameface.model.store.records import Answered, Changes, Collection, FaceBlock, NewPerson, Person
from sameface.model.store.sqlite import Database
from sameface.model.store.tables import changes, collections, faces, migrate, people

ROWS_AT_ONCE = 2_000

# What every search asks, built once: SQLAlchemy takes longer to build a statement than SQLite to answer it.
COLLECTION_NAMED = select(collections).where(collections.c.name == bindparam("name"))
FACES_NAMED = (
    select(faces.c.key, people.c.person_id, people.c.name, faces.c.face_id)
    .join(people, people.c.key == faces.c.person)
    .where(faces.c.key.in_(bindparam("keys", expanding=True)))
)


class Store:
    """Collections, people and faces in one file; one writer at a time, any number of readers."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._database = Database(path)
        # Two processes that make a database at the same moment would find it locked.
        with exclusive_lock(path.with_suffix(".opening"), wait=True), self._database.writing() as connection:
            self.id = migrate(connection)

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    def frozen(self) -> AbstractContextManager[Connection]:
        """One moment of the store for all that this thread reads in the block."""
        return self._database.pinned()

    def writing(self) -> AbstractContextManager[Connection]:
        """One transaction for what is written in the block."""
        return self._database.writing()

    # Collections.

    def create_collection(
        self,
        name: str,
        *,
        store_crops: bool,
        calibration: str | None,
        bundle: str,
        identity: str,
        dimension: int,
    ) -> tuple[Collection, bool]:
        """The collection and whether it is new; one that differs is an error."""
        asked = {
            "store_crops": store_crops,
            "calibration": calibration,
            "bundle": bundle,
            "identity": identity,
            "dimension": dimension,
        }
        with self._database.writing() as connection:
            row = connection.execute(select(collections).where(collections.c.name == name)).one_or_none()
            if row is None:
                values = asked | {
                    "name": name,
                    "revision": 0,
                    "people": 0,
                    "faces": 0,
                    "created_at": time.time(),
                }
                row = connection.execute(insert(collections).values(values).returning(*collections.c)).one()
                return Collection(**row._mapping), True
        different = [key for key, value in asked.items() if row._mapping[key] != value]
        if different:
            raise AlreadyExists(f"The collection {name!r} exists with another {', '.join(different)}.")
        return Collection(**row._mapping), False

    def get_collection(self, name: str) -> Collection:
        """A collection by its name."""
        with self._database.looking() as connection:
            row = connection.execute(COLLECTION_NAMED, {"name": name}).one_or_none()
        if row is None:
            raise CollectionNotFound(f"There is no collection {name!r}.")
        return Collection(**row._mapping)

    def list_collections(
        self, limit: int | None = None, after: str = "", *, drafts: bool = False
    ) -> list[Collection]:
        """Collections by name, from the first after a name; drafts only if they are asked for, alone."""
        chosen = (collections.c.name > after) & (hidden() if drafts else ~hidden())
        wanted = select(collections).where(chosen).order_by(collections.c.name).limit(limit)
        with self._database.reading() as connection:
            return [Collection(**row._mapping) for row in connection.execute(wanted)]

    def latest_revision(self, collection: Collection) -> int:
        """The last number of its change sequence at this moment, whatever this thread is bound to."""
        wanted = select(collections.c.revision).where(collections.c.key == collection.key)
        with self._database.unpinned() as connection:
            return connection.execute(wanted).scalar_one_or_none() or 0

    def collection_keys(self) -> set[int]:
        """The keys of all collections."""
        with self._database.reading() as connection:
            return set(connection.execute(select(collections.c.key)).scalars())

    def delete_collection(self, name: str) -> None:
        """Forget a collection and everybody in it."""
        with self._database.writing() as connection:
            if not connection.execute(delete(collections).where(collections.c.name == name)).rowcount:
                raise CollectionNotFound(f"There is no collection {name!r}.")

    # People.

    def enrol(
        self, collection: Collection, newcomers: Sequence[NewPerson], answers: Sequence[Answered] = ()
    ) -> dict[str, Answered]:
        """Enrol all of them or none, and where there are answers, remember each with its newcomer.

        A newcomer whose key was answered meanwhile is not enrolled; those answers are returned, by key.
        """
        with self._database.writing() as connection:
            refuse_gone(connection, collection)
            earlier = find_answers(connection, collection, [answer.idempotency_key for answer in answers])
            if earlier:
                pairs = zip(newcomers, answers, strict=True)
                newcomers = [one for one, answer in pairs if answer.idempotency_key not in earlier]
                answers = [answer for answer in answers if answer.idempotency_key not in earlier]
            add_newcomers(connection, collection, newcomers)
            remember(connection, collection, answers)
        return earlier

    def get_person(self, collection: Collection, person_id: str) -> Person:
        """A person with all faces."""
        which = (people.c.collection == collection.key) & (people.c.person_id == person_id)
        with self._database.reading() as connection:
            found = read_people(connection, which, 1)
        if not found:
            raise PersonNotFound(f"There is no person {person_id!r} in {collection.name!r}.")
        return found[0]

    def list_people(self, collection: Collection, limit: int, after: str = "") -> list[Person]:
        """People by id, from the first after an id."""
        with self._database.reading() as connection:
            return read_people(
                connection, (people.c.collection == collection.key) & (people.c.person_id > after), limit
            )

    def update_person(self, collection: Collection, person_id: str, values: dict[str, Any]) -> None:
        """Give a person another name or other metadata."""
        with self._database.writing() as connection:
            person = find_person(connection, collection, person_id)
            if values:
                connection.execute(update(people).where(people.c.key == person).values(values))
            record_changes(connection, collection, "update", [(person, None)])

    def delete_person(self, collection: Collection, person_id: str) -> None:
        """Forget a person with all faces and crops."""
        with self._database.writing() as connection:
            person = find_person(connection, collection, person_id)
            gone = connection.execute(select(faces.c.key).where(faces.c.person == person)).scalars().all()
            connection.execute(delete(people).where(people.c.key == person))
            count_up(connection, collection, people=-1, faces=-len(gone))
            record_changes(
                connection, collection, "delete", [(person, face) for face in gone] or [(person, None)]
            )

    def delete_face(self, collection: Collection, person_id: str, face_id: str) -> None:
        """Forget one face of a person."""
        with self._database.writing() as connection:
            person = find_person(connection, collection, person_id)
            gone = connection.execute(
                delete(faces)
                .where((faces.c.person == person) & (faces.c.face_id == face_id))
                .returning(faces.c.key)
            ).scalar_one_or_none()
            if gone is None:
                raise FaceNotFound(f"The person {person_id!r} has no face {face_id!r}.")
            count_up(connection, collection, people=0, faces=-1)
            record_changes(connection, collection, "delete", [(person, gone)])

    # The change sequence.

    def changes_since(self, collection: Collection, sequence: int) -> Iterator[Changes]:
        """The changes after a number, in order and in pieces."""
        wanted = (
            select(changes.c.sequence, changes.c.kind, changes.c.person, changes.c.face, faces.c.embedding)
            .join(faces, (changes.c.kind == "enrol") & (faces.c.key == changes.c.face), isouter=True)
            .where((changes.c.collection == collection.key) & (changes.c.sequence > sequence))
            .order_by(changes.c.sequence)
            .execution_options(yield_per=ROWS_AT_ONCE)
        )
        with self._database.reading() as connection:
            for rows in connection.execute(wanted).partitions():
                came = [(face, person, values) for _, _, person, face, values in rows if values is not None]
                gone = [face for _, kind, _, face, _ in rows if kind == "delete" and face is not None]
                block = to_block(came, collection.dimension)
                yield Changes(rows[-1].sequence, block, np.array(gone, np.int64))

    def read_faces(self, collection: Collection) -> Iterator[FaceBlock]:
        """All faces in the order of their keys, in pieces."""
        wanted = faces_of(collection).execution_options(yield_per=ROWS_AT_ONCE)
        with self._database.reading() as connection:
            for rows in connection.execute(wanted).partitions():
                yield to_block(rows, collection.dimension)

    def find_faces(self, collection: Collection, keys: Keys) -> FaceBlock:
        """Those of some faces that are there, in the order of their keys."""
        wanted = faces_of(collection).where(faces.c.key.in_(keys.tolist()))
        with self._database.reading() as connection:
            return to_block(connection.execute(wanted).all(), collection.dimension)

    def name_faces(self, keys: Sequence[int]) -> dict[int, tuple[str, str | None, str]]:
        """Person, name and face id of faces by their keys; those deleted meanwhile are left out."""
        with self._database.looking() as connection:
            found = connection.execute(FACES_NAMED, {"keys": keys}).all()
        return {key: (person_id, name, face_id) for key, person_id, name, face_id in found}

    def find_photos(self, collection: Collection, photos: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
        """By the hash of each photo that was enrolled before: the person and face ids that came from it."""
        wanted = (
            select(faces.c.photo, people.c.person_id, faces.c.face_id)
            .join(people, people.c.key == faces.c.person)
            .where((faces.c.collection == collection.key) & faces.c.photo.in_(photos))
            .order_by(faces.c.key)
        )
        found: dict[str, list[tuple[str, str]]] = {}
        with self._database.reading() as connection:
            for row in connection.execute(wanted):
                found.setdefault(row.photo, []).append((row.person_id, row.face_id))
        return found

    def embeddings_of(
        self, collection: Collection, person_ids: Sequence[str]
    ) -> dict[str, dict[str, Floats]]:
        """The embeddings of some people's faces, by face id."""
        wanted = (
            select(people.c.person_id, faces.c.face_id, faces.c.embedding)
            .join(people, people.c.key == faces.c.person)
            .where((people.c.collection == collection.key) & people.c.person_id.in_(person_ids))
            .order_by(faces.c.key)
        )
        found: dict[str, dict[str, Floats]] = {person_id: {} for person_id in person_ids}
        with self._database.reading() as connection:
            for person_id, face_id, embedding in connection.execute(wanted):
                found[person_id][face_id] = np.frombuffer(embedding, "<f4")
        return found

    # Answers to retries.

    def find_answers(self, collection: Collection, keys: Sequence[str]) -> dict[str, Answered]:
        """What was answered to these keys in the last day."""
        with self._database.reading() as connection:
            return find_answers(connection, collection, keys)
