"""What a gallery's file is like, read without changing it: an older one is not migrated."""

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, func, select

from sameface.model.store.databases.migrations import VERSION, read_version
from sameface.model.store.databases.sqlite import READABLE, WRITABLE, choose_mode, find_damage, open_engine
from sameface.model.store.databases.tables import collections


@dataclass(frozen=True, slots=True)
class FileReport:
    """The version and the sizes of a store, and the faults of its file."""

    version: int
    collections: int
    people: int
    faces: int
    damage: list[str]

    @property
    def is_current(self) -> bool:
        """Whether this version of sameface wrote it, or has migrated it."""
        return self.version == VERSION


def report_file(path: Path) -> FileReport:
    """The report of the file at `path`; raises if it cannot be read at all."""
    mode = choose_mode(path)
    engine = open_engine(path, "BEGIN", READABLE if mode == WRITABLE else mode)
    try:
        with engine.begin() as connection:
            damage = find_damage(connection, "quick_check")
            return FileReport(read_version(connection), *count(connection), damage)
    finally:
        engine.dispose()


def count(connection: Connection) -> tuple[int, int, int]:
    """The numbers of collections, people and faces."""
    sums = [func.coalesce(func.sum(column), 0) for column in (collections.c.people, collections.c.faces)]
    found, people, faces = connection.execute(select(func.count(), *sums).select_from(collections)).one()
    return found, people, faces
