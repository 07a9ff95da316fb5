"""SQLite with two promises: one writer at a time, and commits that are on the disk."""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool, QueuePool

from sameface.model.errors import StorageFull

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
        self._lookers: list[Connection] = []
        self._own = threading.local()  # what a thread keeps: its pin, and its connection to look

    def looking(self) -> AbstractContextManager[Connection]:
        """For one statement, which is a snapshot by itself: a quarter of the cost of a transaction."""
        return self._pin() or nullcontext(self._get_looker())

    def unpinned(self) -> AbstractContextManager[Connection]:
        """For one statement about this moment, whatever snapshot the thread is bound to."""
        return nullcontext(self._get_looker())

    def reading(self) -> AbstractContextManager[Connection]:
        """A snapshot that later writes do not disturb."""
        return self._pin() or self._reader.begin()

    @contextmanager
    def pinned(self) -> Iterator[Connection]:
        """One snapshot for all that this thread reads in the block."""
        with self._reader.begin() as connection:
            self._own.pin = connection
            try:
                yield connection
            finally:
                self._own.pin = None

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

    def _pin(self) -> AbstractContextManager[Connection] | None:
        """The snapshot that this thread is bound to, if it is."""
        connection = getattr(self._own, "pin", None)
        return nullcontext(connection) if connection else None

    def _get_looker(self) -> Connection:
        """This thread's connection without transactions, opened once."""
        if not hasattr(self._own, "looker"):
            self._own.looker = self._looker.connect()
            self._lookers.append(self._own.looker)
        looker: Connection = self._own.looker
        return looker

    def close(self) -> None:
        """Let go of the file."""
        for connection in self._lookers:
            connection.close()
        for engine in (self._looker, self._reader, self._writer):
            engine.dispose()


def open_engine(path: Path, begin: str | None) -> Engine:
    """An engine whose transactions begin as they should, if at all, and whose commits are on the disk."""
    engine = create_engine(
        f"sqlite:///{path}",
        connect_args={"timeout": BUSY_SECONDS},
        isolation_level=None if begin else "AUTOCOMMIT",
        hide_parameters=True,  # no name, metadata or embedding in an error, and so in a log
        poolclass=QueuePool if begin else NullPool,  # without transactions, a thread keeps its own
        **({"max_overflow": -1} if begin else {}),  # as many connections as there are threads
    )

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # the driver must not begin transactions of its own
        for setting in SETTINGS:
            connection.execute(f"PRAGMA {setting}")

    if begin:
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
    return engine
