"""Adds people with their faces in the caller's transaction: what must be read first, then all writes."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

from sqlalchemy import JSON, Connection, bindparam, cast, null, select, union_all

from sameface.model.errors import AlreadyExists, PersonNotFound
from sameface.model.store.access.audit import Columns, Entry, Head, chain_entries, end_with, find_head
from sameface.model.store.changes import describe_changes, number_newcomers
from sameface.model.store.databases.database import database_of
from sameface.model.store.databases.one_of import OneOf
from sameface.model.store.databases.tables import (
    audit,
    chains,
    changes,
    faces,
    people,
    remembered_responses,
)
from sameface.model.store.idempotency import RESPONSES_TO, describe_responses, expire_responses
from sameface.model.store.records import Collection, NewPerson, RememberedResponse

# Built once: every enrolment runs it.
PEOPLE_NAMED = select(people.c.person_id, people.c.key).where(
    (people.c.collection == bindparam("of")) & OneOf(people.c.person_id, "ids")
)

# Both in one query: a database on a server is asked once less.
KNOWN = union_all(
    PEOPLE_NAMED.with_only_columns(
        people.c.key, people.c.person_id, null(), cast(null(), JSON).label("answer")
    ),
    RESPONSES_TO.with_only_columns(
        null(),
        remembered_responses.c.idempotency_key,
        remembered_responses.c.request,
        remembered_responses.c.answer,
    ),
)


def find_people(connection: Connection, collection: Collection, person_ids: Sequence[str]) -> dict[str, int]:
    """The keys of people by id; unknown ids are left out."""
    rows = connection.execute(PEOPLE_NAMED, {"of": collection.key, "ids": person_ids})
    return {row.person_id: row.key for row in rows}


def find_known(
    connection: Connection, collection: Collection, person_ids: Sequence[str], keys: Sequence[str]
) -> tuple[dict[str, int], dict[str, RememberedResponse]]:
    """The keys of people by id, and the remembered responses of the last day by idempotency key."""
    if not keys:
        return find_people(connection, collection, person_ids), {}
    people_found: dict[str, int] = {}
    responses: dict[str, RememberedResponse] = {}
    wanted = {"of": collection.key, "ids": person_ids, "keys": keys}
    for key, name, request, answer in connection.execute(KNOWN, wanted):
        if key is None:
            responses[name] = RememberedResponse(name, request, answer)
        else:
            people_found[name] = key
    return people_found, responses


def add_people(connection: Connection, collection: Collection, newcomers: Sequence[NewPerson]) -> None:
    """Add people with their faces; raises if `may_exist` or `must_exist` of one is not fulfilled."""
    known = find_people(connection, collection, [newcomer.person_id for newcomer in newcomers])
    insert_newcomers(connection, collection, known, newcomers, find_new(collection, known.keys(), newcomers))


def add_faces(connection: Connection, collection: Collection, person: int, newcomer: NewPerson) -> None:
    """Add the faces of `newcomer` to the person with this key, who is known."""
    insert_newcomers(connection, collection, {newcomer.person_id: person}, [newcomer], {})


def find_new(collection: Collection, known: Set[str], newcomers: Sequence[NewPerson]) -> dict[str, NewPerson]:
    """By id the people to create: newcomers not in `known`; raises if `must_exist` or `may_exist` forbids."""
    new: dict[str, NewPerson] = {}
    for newcomer in newcomers:
        if newcomer.person_id not in known and newcomer.person_id not in new:
            if newcomer.must_exist:
                raise PersonNotFound(f"There is no person {newcomer.person_id!r} in {collection.name!r}.")
            new[newcomer.person_id] = newcomer
        elif not (newcomer.may_exist or newcomer.must_exist):
            raise AlreadyExists(
                f"There is a person {newcomer.person_id!r} in {collection.name!r} already: add the faces to"
                f" this person (POST .../people/{newcomer.person_id}/faces), or choose another id."
            )
    return new


def insert_newcomers(
    connection: Connection,
    collection: Collection,
    known: Mapping[str, int],
    newcomers: Sequence[NewPerson],
    new: Mapping[str, NewPerson],
    responses: Sequence[RememberedResponse] = (),
    head: Head | None = None,
) -> None:
    """Insert the people in `new` and the faces of all newcomers; `known` has the keys of the others by id.

    All that must be read comes first, so that a database on a server is asked few times; `head` is that of
    the connection's chain, if it was read already.
    """
    database = database_of(connection)
    count = sum(len(newcomer.faces) for newcomer in newcomers)
    revision, now, (person_keys, face_keys) = number_newcomers(
        connection, collection, more_people=len(new), more_faces=count
    )
    owners = {**known, **dict(zip(new, person_keys, strict=True))}
    face_rows = list(describe_faces(collection, owners, newcomers, face_keys))
    changed = [(row["person"], row["key"]) for row in face_rows]
    entries = []
    if newcomers and collection.draft is None:  # a draft is in the audit once it is published
        known_ids = known.keys()
        entries = chain_entries(
            head or find_head(connection), describe_entries(collection, newcomers, known_ids, revision)
        )
    rows = {
        people: list(describe_people(collection, new.values(), person_keys)),
        faces: face_rows,
        changes: describe_changes(collection, "enrol", changed, revision),
        audit: entries,
        chains: [end_with(entries[-1])] if entries else [],
        remembered_responses: describe_responses(collection, responses, now),
    }
    database.append(connection, rows)
    if responses:
        expire_responses(connection)


def describe_people(
    collection: Collection, newcomers: Iterable[NewPerson], keys: Iterable[int]
) -> Iterator[dict[str, Any]]:
    """The rows of new people, who get these keys."""
    for newcomer, key in zip(newcomers, keys, strict=True):
        yield {
            "key": key,
            "collection": collection.key,
            "person_id": newcomer.person_id,
            "name": newcomer.name,
            "metadata": newcomer.metadata,
            "created_at": time.time() if newcomer.created_at is None else newcomer.created_at,
        }


def describe_faces(
    collection: Collection,
    owners: Mapping[str, int],
    newcomers: Iterable[NewPerson],
    keys: Iterable[int],
) -> Iterator[dict[str, Any]]:
    """The rows of the newcomers' faces, which get these keys; `owners` has the people's keys by id."""
    found = ((owners[newcomer.person_id], face) for newcomer in newcomers for face in newcomer.faces)
    for (person, face), key in zip(found, keys, strict=True):
        yield {
            "key": key,
            "collection": collection.key,
            "person": person,
            "face_id": face.face_id,
            "embedding": face.embedding.astype("<f4").tobytes(),
            "quality": face.quality,
            "bundle": collection.bundle,
            "identity": collection.identity,
            "photo": face.photo,
            "crop": face.crop if collection.store_crops else None,
            "details": face.details,
            "created_at": time.time() if face.created_at is None else face.created_at,
        }


def describe_entries(
    collection: Collection, newcomers: Sequence[NewPerson], known: Set[str], revision: int
) -> list[Columns]:
    """Each newcomer for the audit: enrolled, or with faces added to a person who was `known`."""
    common = Entry.about(collection, "enroll_person", revision=revision).to_columns()
    entries, seen = [], set(known)
    for newcomer in newcomers:
        action = "add_faces" if newcomer.person_id in seen else "enroll_person"
        seen.add(newcomer.person_id)
        face_ids = [face.face_id for face in newcomer.faces]
        what = {"action": action, "person_id": newcomer.person_id, "details": {"face_ids": face_ids}}
        entries.append(common | what)
    return entries
