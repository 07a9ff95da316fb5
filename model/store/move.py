"""Moves all that a database holds into another one, in blocks, and proves that both then hold the same."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Row, Table, delete, func, insert, select, tuple_

from sameface.model.data_folder import GalleryPlace
from sameface.model.errors import StoreRefused
from sameface.model.faces import Value
from sameface.model.observer import Progress, ignore_progress
from sameface.model.store.databases.database import Database
from sameface.model.store.databases.migrations import MOVED, MOVING, migrate
from sameface.model.store.databases.opening import open_database
from sameface.model.store.databases.tables import COUNTED, about, metadata

ROWS_AT_ONCE = 1_000  # in memory, and committed together: with crops some tens of megabytes
TABLES = [table for table in metadata.sorted_tables if table is not about]
OF_THE_DATABASE = ("version", "oldest", MOVING, MOVED)  # rows of `about` that are not the gallery's


@dataclass(frozen=True, slots=True)
class MovedTable(Value):
    """A table as both databases have it."""

    table: str
    rows: int
    sha256: str


def move_everything(
    place: GalleryPlace, target: GalleryPlace, progress: Progress = ignore_progress
) -> list[MovedTable]:
    """Move the gallery at `place` to `target`, which must be empty; returns what each table holds there.

    Nobody may have either open. Until the end only the old place can be opened, and then only the new one.
    After a crash the same move goes on after the last block that was committed.
    """
    if isinstance(place, Path) and not place.exists():
        raise StoreRefused(f"There is no gallery in {place.parent}: name its folder with --data.")
    with (
        closing(open_database(place)) as old,
        old.claimed() as source,
        closing(open_database(target)) as new,
        new.claimed() as copy,
    ):
        with source.begin():
            store_id = migrate(source)
        with copy.begin():
            prepare(copy, store_id)
        with source.begin():
            for table in TABLES:
                copy_table(source, new, copy, table, progress)
            moved = prove(source, copy, progress)
            facts, counters = read_facts(source), read_counters(old, source)
            mark(source, MOVED, store_id)
        with copy.begin():
            new.set_counters(copy, counters)
            write_facts(copy, facts)
        return moved


def prepare(connection: Connection, store_id: str) -> None:
    """Make the tables of a database that the gallery `store_id` is moved into, and mark them; raises if they
    hold anything but an earlier part of this move."""
    migrate(connection)
    begun = select(about.c.value).where(about.c.key == MOVING)
    if connection.execute(begun).scalar_one_or_none() == store_id:
        return
    if any(connection.execute(select(table).limit(1)).first() for table in TABLES):
        raise StoreRefused(
            "There is a gallery already where this one is to go: name an empty database or a new folder."
        )
    mark(connection, MOVING, store_id)


def mark(connection: Connection, what: str, store_id: str) -> None:
    """Note in the database that it is `what`, so that nobody opens it."""
    connection.execute(delete(about).where(about.c.key == what))
    connection.execute(insert(about).values(key=what, value=store_id))


def copy_table(source: Connection, new: Database, copy: Connection, table: Table, progress: Progress) -> None:
    """Copy the rows that the copy lacks in blocks, each in a transaction of its own."""
    key = table.primary_key.columns
    with copy.begin():
        last = copy.execute(select(*key).order_by(*(column.desc() for column in key)).limit(1)).first()
        done = count_rows(copy, table)
    total = count_rows(source, table)
    for rows in read_blocks(source, table, last):
        with copy.begin():
            new.append(copy, {table: [row._asdict() for row in rows]})
        done += len(rows)
        progress(f"moving {table.name}", done, total)


def read_blocks(
    connection: Connection, table: Table, after: Sequence[Any] | None = None
) -> Iterator[Sequence[Row[Any]]]:
    """The rows of a table by their primary key, from the first that is greater than `after`."""
    key = table.primary_key.columns
    block = select(table).order_by(*key).limit(ROWS_AT_ONCE)
    while rows := connection.execute(
        block if after is None else block.where(tuple_(*key) > tuple_(*after))
    ).all():
        yield rows
        after = [rows[-1]._mapping[column] for column in key]


def count_rows(connection: Connection, table: Table) -> int:
    """The number of rows in a table."""
    return connection.execute(select(func.count()).select_from(table)).scalar_one()


def prove(source: Connection, copy: Connection, progress: Progress) -> list[MovedTable]:
    """What each table holds; raises if the copy holds anything else, and then empties it."""
    moved = []
    for number, table in enumerate(TABLES, 1):
        moved.append(digest_table(source, table))
        with copy.begin():
            arrived = digest_table(copy, table)
        if arrived != moved[-1]:
            with copy.begin():
                for each in reversed(TABLES):
                    copy.execute(delete(each))
            raise StoreRefused(
                f"The table {table.name} has changed since the move began: run it again, from the start."
            )
        progress("comparing tables", number, len(TABLES))
    return moved


def digest_table(connection: Connection, table: Table) -> MovedTable:
    """The number of rows in a table, and the SHA-256 of all their values in the order of their keys."""
    digest, rows = hashlib.sha256(), 0
    for block in read_blocks(connection, table):
        rows += len(block)
        digest.update("".join(repr(tuple(row)) for row in block).encode())
    return MovedTable(table.name, rows, digest.hexdigest())


def read_facts(connection: Connection) -> dict[str, str]:
    """The rows of `about` that belong to the gallery, such as its id."""
    rows = connection.execute(select(about).where(about.c.key.not_in(OF_THE_DATABASE)))
    return {row.key: row.value for row in rows}


def write_facts(connection: Connection, facts: dict[str, str]) -> None:
    """Give the database the gallery's rows of `about`, and take away the mark: now it can be opened."""
    connection.execute(delete(about).where(about.c.key.not_in(("version", "oldest"))))
    connection.execute(insert(about), [{"key": key, "value": value} for key, value in facts.items()])


def read_counters(database: Database, connection: Connection) -> dict[str, int]:
    """By table: the largest key that was ever given, whether or not its row is still there."""
    drawn = database.read_counters(connection)
    largest = {
        table: connection.execute(select(func.max(metadata.tables[table].c[column]))).scalar_one() or 0
        for table, column in COUNTED.items()
    }
    return {table: max(drawn.get(table, 0), key) for table, key in largest.items()}
