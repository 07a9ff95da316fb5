"""Rows in and out of the gallery's tables, each function inside a transaction of its caller."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy import ColumnElement, Connection, Select, delete, insert, or_, select, update

from sameface.model.errors import AlreadyExists, CollectionNotFound, PersonNotFound
from sameface.model.store.records import (
    Answered,
    Collection,
    FaceBlock,
    NewFace,
    NewPerson,
    Person,
    StoredFace,
)
from sameface.model.store.tables import answers, changes, collections, faces, people

ANSWER_SECONDS = 24 * 3600
DRAFTS = ("% (importing)", "% (reembedding %)", "% (replaced)")  # names that no request can have


def hidden() -> ColumnElement[bool]:
    """Whether a collection is a draft, or one that a draft has replaced."""
    return or_(*(collections.c.name.like(name) for name in DRAFTS))


def find_person(connection: Connection, collection: Collection, person_id: str) -> int:
    """The key of a person who is to be changed."""
    refuse_gone(connection, collection)
    found = find_people(connection, collection, [person_id])
    if not found:
        raise PersonNotFound(f"There is no person {person_id!r} in {collection.name!r}.")
    return found[person_id]


def refuse_gone(connection: Connection, collection: Collection) -> None:
    """A collection that was deleted or replaced meanwhile takes no more writes."""
    same = (collections.c.key == collection.key) & (collections.c.name == collection.name)
    if not connection.execute(select(collections.c.key).where(same)).first():
        raise CollectionNotFound(f"There is no collection {collection.name!r} any more.")


def find_people(connection: Connection, collection: Collection, person_ids: Sequence[str]) -> dict[str, int]:
    """Keys of those people who exist, by their ids."""
    wanted = select(people.c.person_id, people.c.key).where(
        (people.c.collection == collection.key) & people.c.person_id.in_(person_ids)
    )
    return {row.person_id: row.key for row in connection.execute(wanted)}


def add_newcomers(connection: Connection, collection: Collection, newcomers: Sequence[NewPerson]) -> None:
    """Add people with their faces; one who is there already and may not be is an error."""
    known = find_people(connection, collection, [newcomer.person_id for newcomer in newcomers])
    before = len(known)
    for newcomer in newcomers:
        if newcomer.person_id not in known:
            if newcomer.must_exist:
                raise PersonNotFound(f"There is no person {newcomer.person_id!r} in {collection.name!r}.")
            known[newcomer.person_id] = add_person(connection, collection, newcomer)
        elif not (newcomer.may_exist or newcomer.must_exist):
            raise AlreadyExists(f"There is a person {newcomer.person_id!r} in {collection.name!r} already.")
    added = add_faces(connection, collection, known, newcomers)
    count_up(connection, collection, people=len(known) - before, faces=added)


def add_person(connection: Connection, collection: Collection, newcomer: NewPerson) -> int:
    """A new person's key."""
    values = {
        "collection": collection.key,
        "person_id": newcomer.person_id,
        "name": newcomer.name,
        "metadata": newcomer.metadata,
        "created_at": time.time() if newcomer.created_at is None else newcomer.created_at,
    }
    return int(connection.execute(insert(people).values(values).returning(people.c.key)).scalar_one())


def add_faces(
    connection: Connection,
    collection: Collection,
    keys: dict[str, int],
    newcomers: Sequence[NewPerson],
) -> int:
    """Add the faces of newcomers, each with its place in the change sequence; how many there are."""
    rows = [
        {
            "collection": collection.key,
            "person": keys[newcomer.person_id],
            "face_id": face.face_id,
            "embedding": face.embedding.astype("<f4").tobytes(),
            "quality": face.quality,
            "bundle": collection.bundle,
            "identity": collection.identity,
            "photo": face.photo,
            "crop": face.crop if collection.store_crops else None,
            "created_at": time.time() if face.created_at is None else face.created_at,
        }
        for newcomer in newcomers
        for face in newcomer.faces
    ]
    if rows:
        added = connection.execute(
            insert(faces).returning(faces.c.person, faces.c.key, sort_by_parameter_order=True), rows
        )
        record_changes(connection, collection, "enrol", [(row.person, row.key) for row in added])
    return len(rows)


def record_changes(
    connection: Connection,
    collection: Collection,
    kind: str,
    what: Sequence[tuple[int, int | None]],
) -> None:
    """Give every change the next number of the collection."""
    last = connection.execute(
        update(collections)
        .where(collections.c.key == collection.key)
        .values(revision=collections.c.revision + len(what))
        .returning(collections.c.revision)
    ).scalar_one()
    first = last - len(what) + 1
    rows = [
        {
            "collection": collection.key,
            "sequence": first + place,
            "kind": kind,
            "person": person,
            "face": face,
        }
        for place, (person, face) in enumerate(what)
    ]
    connection.execute(insert(changes), rows)


def count_up(connection: Connection, collection: Collection, *, people: int, faces: int) -> None:
    """Keep count of who came, or with negative numbers, who went."""
    connection.execute(
        update(collections)
        .where(collections.c.key == collection.key)
        .values(people=collections.c.people + people, faces=collections.c.faces + faces)
    )


def find_answers(connection: Connection, collection: Collection, keys: Sequence[str]) -> dict[str, Answered]:
    """What was answered to these keys in the last day."""
    wanted = select(answers).where(
        (answers.c.collection == collection.key)
        & answers.c.idempotency_key.in_(keys)
        & (answers.c.created_at > time.time() - ANSWER_SECONDS)
    )
    found = connection.execute(wanted) if keys else ()
    return {row.idempotency_key: Answered(row.idempotency_key, row.request, row.answer) for row in found}


def remember(connection: Connection, collection: Collection, new: Sequence[Answered]) -> None:
    """Keep answers for a day, and drop those that are older."""
    if not new:
        return
    connection.execute(delete(answers).where(answers.c.created_at <= time.time() - ANSWER_SECONDS))
    rows = [
        {
            "collection": collection.key,
            "idempotency_key": answered.idempotency_key,
            "request": answered.request,
            "answer": answered.answer,
            "created_at": time.time(),
        }
        for answered in new
    ]
    connection.execute(insert(answers), rows)


def read_people(connection: Connection, which: ColumnElement[bool], limit: int) -> list[Person]:
    """People with their faces, by id."""
    rows = connection.execute(select(people).where(which).order_by(people.c.person_id).limit(limit)).all()
    owned: dict[int, list[StoredFace]] = {row.key: [] for row in rows}
    wanted = select(faces.c.person, faces.c.face_id, faces.c.quality, faces.c.photo, faces.c.created_at)
    for row in connection.execute(wanted.where(faces.c.person.in_(owned)).order_by(faces.c.key)):
        owned[row.person].append(StoredFace(row.face_id, row.quality, row.photo, row.created_at))
    return [
        Person(row.key, row.person_id, row.name, row.metadata, row.created_at, owned[row.key]) for row in rows
    ]


def read_newcomers(
    connection: Connection, collection: Collection, limit: int, after: str = ""
) -> list[NewPerson]:
    """People with all that is stored of them, by id, as they would be enrolled elsewhere."""
    which = (people.c.collection == collection.key) & (people.c.person_id > after)
    rows = connection.execute(select(people).where(which).order_by(people.c.person_id).limit(limit)).all()
    owned: dict[int, list[NewFace]] = {row.key: [] for row in rows}
    for row in connection.execute(select(faces).where(faces.c.person.in_(owned)).order_by(faces.c.key)):
        owned[row.person].append(restore_face(row))
    return [
        NewPerson(row.person_id, owned[row.key], row.name, row.metadata, created_at=row.created_at)
        for row in rows
    ]


def restore_face(row: Any) -> NewFace:
    """A stored face as it would be enrolled elsewhere."""
    embedding = np.frombuffer(row.embedding, "<f4")
    return NewFace(row.face_id, embedding, row.quality, row.photo, row.crop, created_at=row.created_at)


def faces_of(collection: Collection) -> Select[tuple[int, int, bytes]]:
    """Key, person and embedding of a collection's faces, in the order of their keys."""
    return (
        select(faces.c.key, faces.c.person, faces.c.embedding)
        .where(faces.c.collection == collection.key)
        .order_by(faces.c.key)
    )


def to_block(rows: Sequence[Any], dimension: int) -> FaceBlock:
    """Rows of face, person and stored embedding, column by column."""
    stored = b"".join(row[2] for row in rows)
    return FaceBlock(
        np.array([row[0] for row in rows], np.int64),
        np.array([row[1] for row in rows], np.int64),
        np.frombuffer(stored, "<f4").reshape(-1, dimension),
    )
