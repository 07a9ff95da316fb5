"""SQLite with two promises: one writer at a time, and commits that are on the disk."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import OperationalError

from model.errors import StorageFull

BUSY_SECONDS = 30
SETTINGS = (
    "journal_mode = WAL",
    "synchronous = FULL",
    "foreign_keys = ON",
    "secure_delete = ON",  # what was deleted is overwritten with zeros
)


class Database:
    """One file, read in snapshots and written in turns, by any number of threads and processes."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._looker = open_engine(path, None)
        self._reader = open_engine(path, "BEGIN")
        self._writer = open_engine(path, "BEGIN IMMEDIATE")

    @contextmanager
    def looking(self) -> Iterator[Connection]:
        """For one statement, which needs no transaction around it to be a snapshot: half the cost."""
        with self._looker.connect() as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A snapshot that later writes do not disturb."""
        with self._reader.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that is on the disk when the block ends, or has never been."""
        try:
            with self._writer.begin() as connection:
                yield connection
        except OperationalError as error:
            if "full" in str(error.orig):
                raise StorageFull("There is no room left for the gallery; searches go on.") from error
            raise

    def close(self) -> None:
        """Let go of the file."""
        for engine in (self._looker, self._reader, self._writer):
            engine.dispose()


def open_engine(path: Path, begin: str | None) -> Engine:
    """An engine whose transactions begin as they should, if at all, and whose commits are on the disk."""
    engine = create_engine(
        f"sqlite:///{path}",
        connect_args={"timeout": BUSY_SECONDS},
        isolation_level=None if begin else "AUTOCOMMIT",
    )

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # the driver must not begin transactions of its own
        for setting in SETTINGS:
            connection.execute(f"PRAGMA {setting}")

    if begin:
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
    return engine
