"""The change sequence of a collection, which every index follows, and faces by key."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection, bindparam, exists, func, select, update

from sameface.model.faces import Keys
from sameface.model.store.databases.database import Database, Now, database_of
from sameface.model.store.databases.face_rows import to_block
from sameface.model.store.databases.one_of import OneOf
from sameface.model.store.databases.tables import changes, collections, faces, people
from sameface.model.store.records import Collection, FaceBlock, FaceChanges

ROWS_AT_ONCE = 2_000

# Built once: a search that Milvus finds candidates for runs this query. By key alone: if it named the
# collection, too, SQLite would look through all faces of it.
FACES_BY_KEY = (
    select(faces.c.key, faces.c.person, faces.c.embedding, faces.c.collection)
    .where(OneOf(faces.c.key, "keys"))
    .order_by(faces.c.key)
)
FACES_BY_PERSON = (
    select(faces.c.key, faces.c.person, faces.c.embedding)
    .where(OneOf(faces.c.person, "people"))
    .order_by(faces.c.key)
)

# Built once: every search or write runs one.
REVISION_OF = select(collections.c.revision, collections.c.compacted).where(
    collections.c.key == bindparam("of")
)
NUMBER_CHANGES = (
    update(collections)
    .where(collections.c.key == bindparam("of"))
    .values(
        revision=collections.c.revision + bindparam("changes"),
        people=collections.c.people + bindparam("more_people"),
        faces=collections.c.faces + bindparam("more_faces"),
    )
    .returning(collections.c.revision, Now())
)


class ChangesCompacted(Exception):
    """Changes that a follower lacks are no longer kept: it must read all faces anew."""


class Changes:
    """The change sequence and the faces by key, as indexes read them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def latest(self, collection: Collection) -> int:
        """The collection's revision in the newest state, even if this thread has pinned an older one."""
        with self._database.newest() as connection:
            row = connection.execute(REVISION_OF, {"of": collection.key}).one_or_none()
        return row.revision if row else 0

    def since(self, collection: Collection, sequence: int) -> Iterator[FaceChanges]:
        """The changes after the number `sequence`, in order, in blocks of up to `ROWS_AT_ONCE`.

        After 0 it is all faces that there are, read from their table: that is faster, and a new machine needs
        no change that was ever made. Raises `ChangesCompacted` if some of the changes are no longer kept.
        """
        with self._database.reading() as connection:
            row = connection.execute(REVISION_OF, {"of": collection.key}).one_or_none()
            if row is None:
                return
            if not sequence:
                yield from self._read_everything(connection, collection, row.revision)
            elif sequence < row.compacted:
                raise ChangesCompacted
            else:
                yield from read_changes(connection, collection, sequence)

    def _read_everything(
        self, connection: Connection, collection: Collection, revision: int
    ) -> Iterator[FaceChanges]:
        """All faces; the last block, which may be empty, is the one up to `revision`."""
        none = np.empty(0, np.int64)
        last = to_block([], collection.dimension)
        for block in self._database.read_faces(connection, collection, ROWS_AT_ONCE):
            if len(last.faces):
                yield FaceChanges(0, last, none)
            last = block
        yield FaceChanges(revision, last, none)

    def faces_touched(self, collection: Collection, after: int) -> list[int]:
        """The faces that were deleted after the change number `after`, and all faces of changed people.

        Raises `ChangesCompacted` if some of the changes are no longer kept.
        """
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
            if is_compacted(connection, collection, after):
                raise ChangesCompacted
            return [face for face in connection.execute(wanted).scalars() if face is not None]

    def has_deletes(self, collection: Collection, after: int) -> bool:
        """Whether a person or a face was, or may have been, deleted after the change number `after`."""
        wanted = (
            (changes.c.collection == collection.key)
            & (changes.c.sequence > after)
            & (changes.c.kind == "delete")
        )
        with self._database.reading() as connection:
            return is_compacted(connection, collection, after) or bool(
                connection.execute(select(exists().where(wanted))).scalar_one()
            )

    def all_faces(self, collection: Collection) -> Iterator[FaceBlock]:
        """All faces of a collection in the order of their keys, in blocks of up to `ROWS_AT_ONCE`."""
        with self._database.reading() as connection:
            yield from self._database.read_faces(connection, collection, ROWS_AT_ONCE)

    def find_faces(self, collection: Collection, keys: Keys) -> FaceBlock:
        """The faces with these keys, in the order of their keys; deleted ones are left out."""
        with self._database.statement() as connection:
            rows = connection.execute(FACES_BY_KEY, {"keys": keys.tolist()}).all()
        return to_block([row for row in rows if row.collection == collection.key], collection.dimension)

    def faces_of(self, collection: Collection, people: Keys) -> FaceBlock:
        """All faces of the people with these keys, in the order of the faces' keys."""
        with self._database.statement() as connection:
            rows = connection.execute(FACES_BY_PERSON, {"people": people.tolist()}).all()
        return to_block(rows, collection.dimension)


def is_compacted(connection: Connection, collection: Collection, after: int) -> bool:
    """Whether some of the changes after the number `after` are no longer kept."""
    row = connection.execute(REVISION_OF, {"of": collection.key}).one_or_none()
    return row is not None and after < row.compacted


def read_changes(connection: Connection, collection: Collection, sequence: int) -> Iterator[FaceChanges]:
    """The changes after the number `sequence`, in order, in blocks of up to `ROWS_AT_ONCE`."""
    wanted = (
        select(changes.c.sequence, changes.c.kind, changes.c.person, changes.c.face, faces.c.embedding)
        .join(faces, (changes.c.kind == "enrol") & (faces.c.key == changes.c.face), isouter=True)
        .where((changes.c.collection == collection.key) & (changes.c.sequence > sequence))
        .order_by(changes.c.sequence)
        .execution_options(yield_per=ROWS_AT_ONCE)
    )
    with connection.execute(wanted) as found:  # a reader may stop in the middle
        for rows in found.partitions():
            came = [(face, person, values) for _, _, person, face, values in rows if values is not None]
            gone = [face for _, kind, _, face, _ in rows if kind == "delete" and face is not None]
            block = to_block(came, collection.dimension)
            yield FaceChanges(rows[-1].sequence, block, np.array(gone, np.int64))


def record_changes(
    connection: Connection,
    collection: Collection,
    kind: str,
    changed: Sequence[tuple[int, int | None]],
    *,
    people: int = 0,
    faces: int = 0,
) -> int:
    """Append a change of `kind` to the sequence for each person key and face key, or None, in `changed`.

    The numbers are taken as `number_changes` says. Returns the last one: the collection's revision.
    """
    last, _ = number_changes(connection, collection, len(changed), people=people, faces=faces)
    rows = describe_changes(collection, kind, changed, last)
    database_of(connection).append(connection, {changes: rows})
    return last


def number_changes(
    connection: Connection, collection: Collection, count: int, *, people: int, faces: int
) -> tuple[int, float]:
    """Take `count` numbers of the change sequence, and add to the collection's counters.

    One UPDATE takes all the numbers, so that no two transactions ever get the same one. `people` and `faces`
    are negative after a deletion. Returns the last number, and the time by the database's clock.
    """
    values = {"of": collection.key, "changes": count, "more_people": people, "more_faces": faces}
    last, now = connection.execute(NUMBER_CHANGES, values).one()
    database_of(connection).announce(collection.key)
    return last, now


def number_newcomers(
    connection: Connection, collection: Collection, *, more_people: int, more_faces: int
) -> tuple[int, float, list[list[int]]]:
    """Take a change number per new face, as `number_changes` does, and keys for new people and faces.

    Returns the last number, the time by the database's clock, and the keys of people and of faces.
    """
    values = {
        "of": collection.key,
        "changes": more_faces,
        "more_people": more_people,
        "more_faces": more_faces,
    }
    database = database_of(connection)
    drawn = {people: "more_people", faces: "more_faces"}
    (last, now, *_), keys = database.update_and_draw(connection, NUMBER_CHANGES, values, drawn)
    database.announce(collection.key)
    return last, now, keys


def describe_changes(
    collection: Collection, kind: str, changed: Sequence[tuple[int, int | None]], last: int
) -> list[dict[str, Any]]:
    """The rows of changes whose numbers end with `last`."""
    first = last - len(changed) + 1
    return [
        {
            "collection": collection.key,
            "sequence": first + place,
            "kind": kind,
            "person": person,
            "face": face,
        }
        for place, (person, face) in enumerate(changed)
    ]
