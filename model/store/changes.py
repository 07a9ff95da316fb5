"""The change sequence of a collection, which every index follows, and faces by key."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection, Select, bindparam, exists, func, insert, select, update

from sameface.model.faces import Floats, Keys
from sameface.model.store.databases.database import Database, damaged
from sameface.model.store.databases.tables import changes, collections, faces
from sameface.model.store.records import Collection, FaceBlock, FaceChanges

ROWS_AT_ONCE = 2_000

# Built once: a search that Milvus finds candidates for runs this query. By key alone: if it named the
# collection, too, SQLite would look through all faces of it.
FACES_BY_KEY = (
    select(faces.c.key, faces.c.person, faces.c.embedding, faces.c.collection)
    .where(faces.c.key.in_(bindparam("keys", expanding=True)))
    .order_by(faces.c.key)
)


class Changes:
    """The change sequence and the faces by key, as indexes read them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def latest(self, collection: Collection) -> int:
        """The collection's revision in the newest state, even if this thread has pinned an older one."""
        wanted = select(collections.c.revision).where(collections.c.key == collection.key)
        with self._database.newest() as connection:
            return connection.execute(wanted).scalar_one_or_none() or 0

    def since(self, collection: Collection, sequence: int) -> Iterator[FaceChanges]:
        """The changes after the number `sequence`, in order, in blocks of up to `ROWS_AT_ONCE`."""
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
                yield FaceChanges(rows[-1].sequence, block, np.array(gone, np.int64))

    def faces_touched(self, collection: Collection, after: int) -> list[int]:
        """The faces that were deleted after the change number `after`, and all faces of changed people."""
        updated = (changes.c.kind == "update") & (faces.c.person == changes.c.person)
        wanted = (
            select(func.coalesce(changes.c.face, faces.c.key))
            .join_from(changes, faces, updated, isouter=True)
            .where(
                (changes.c.collection == collection.key)
                & (changes.c.sequence > after)
                & (changes.c.kind != "enrol")
            )
        )
        with self._database.reading() as connection:
            return [face for face in connection.execute(wanted).scalars() if face is not None]

    def has_deletes(self, collection: Collection, after: int) -> bool:
        """Whether somebody or a face was deleted after the change number `after`."""
        wanted = (
            (changes.c.collection == collection.key)
            & (changes.c.sequence > after)
            & (changes.c.kind == "delete")
        )
        with self._database.reading() as connection:
            return bool(connection.execute(select(exists().where(wanted))).scalar_one())

    def all_faces(self, collection: Collection) -> Iterator[FaceBlock]:
        """All faces of a collection in the order of their keys, in blocks of up to `ROWS_AT_ONCE`."""
        wanted = select_faces(collection).execution_options(yield_per=ROWS_AT_ONCE)
        with self._database.reading() as connection:
            for rows in connection.execute(wanted).partitions():
                yield to_block(rows, collection.dimension)

    def find_faces(self, collection: Collection, keys: Keys) -> FaceBlock:
        """The faces with these keys, in the order of their keys; deleted ones are left out."""
        with self._database.statement() as connection:
            rows = connection.execute(FACES_BY_KEY, {"keys": keys.tolist()}).all()
        return to_block([row for row in rows if row.collection == collection.key], collection.dimension)

    def faces_of(self, collection: Collection, people: Keys) -> FaceBlock:
        """All faces of the people with these keys, in the order of the faces' keys."""
        wanted = select(faces.c.key, faces.c.person, faces.c.embedding).where(
            faces.c.person.in_(people.tolist())
        )
        with self._database.statement() as connection:
            rows = connection.execute(wanted.order_by(faces.c.key)).all()
        return to_block(rows, collection.dimension)


def record_changes(
    connection: Connection,
    collection: Collection,
    kind: str,
    changed: Sequence[tuple[int, int | None]],
) -> int:
    """Append a change of `kind` to the sequence for each person key and face key, or None, in `changed`.

    One UPDATE takes all the numbers, so that no two transactions ever get the same one. Returns the last one:
    the collection's revision.
    """
    last: int = connection.execute(
        update(collections)
        .where(collections.c.key == collection.key)
        .values(revision=collections.c.revision + len(changed))
        .returning(collections.c.revision)
    ).scalar_one()
    first = last - len(changed) + 1
    rows = [
        {
            "collection": collection.key,
            "sequence": first + place,
            "kind": kind,
            "person": person,
            "face": face,
        }
        for place, (person, face) in enumerate(changed)
    ]
    connection.execute(insert(changes), rows)
    return last


def select_faces(collection: Collection) -> Select[tuple[int, int, bytes]]:
    """SELECT key, person and embedding of a collection's faces, in the order of their keys."""
    return (
        select(faces.c.key, faces.c.person, faces.c.embedding)
        .where(faces.c.collection == collection.key)
        .order_by(faces.c.key)
    )


def to_block(rows: Sequence[Any], dimension: int) -> FaceBlock:
    """Rows of face key, person key and stored embedding as columns."""
    stored = b"".join(row[2] for row in rows)
    return FaceBlock(
        np.array([row[0] for row in rows], np.int64),
        np.array([row[1] for row in rows], np.int64),
        read_embeddings(stored, len(rows), dimension),
    )


def read_embeddings(stored: bytes, count: int, dimension: int) -> Floats:
    """The `count` embeddings in `stored`, one after the other."""
    if len(stored) != 4 * count * dimension:
        raise damaged("an embedding is too short or too long")
    return np.frombuffer(stored, "<f4").reshape(count, dimension)
