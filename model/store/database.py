"""Connections to the database: snapshots to read, one writer at a time, commits that are on the disk."""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError, OperationalError

from sameface.model.errors import AlreadyExists, StorageFull
from sameface.model.files import make_private_folder, open_private
from sameface.model.store.sqlite import empty_log, open_engine

SCRUB_SECONDS = 5.0


class Database:
    """One database, read in snapshots and written in turns, by any number of threads and processes."""

    def __init__(self, path: Path) -> None:
        make_private_folder(path.parent)
        open_private(path).close()  # its WAL gets the same mode
        self.path = path
        self._scrub: threading.Timer | None = None
        self._scrubbing = threading.Lock()
        self._closed = False
        self._autocommit = open_engine(path, None)
        self._reader = open_engine(path, "BEGIN")
        self._writer = open_engine(path, "BEGIN IMMEDIATE")
        self._opened: list[Connection] = []  # the autocommit connections of all threads
        self._thread = threading.local()  # a thread's pinned snapshot and its autocommit connection

    def statement(self) -> AbstractContextManager[Connection]:
        """A connection for one SELECT, its own snapshot: a quarter of the cost of a transaction."""
        return self._pinned_snapshot() or nullcontext(self._autocommit_connection())

    def newest(self) -> AbstractContextManager[Connection]:
        """A connection for one SELECT of the newest state, even if this thread has pinned an older one."""
        return nullcontext(self._autocommit_connection())

    def reading(self) -> AbstractContextManager[Connection]:
        """A read transaction: a snapshot that later writes do not change."""
        return self._pinned_snapshot() or self._reader.begin()

    @contextmanager
    def pinned(self) -> Iterator[Connection]:
        """One snapshot for everything that this thread reads in the block."""
        with self._reader.begin() as connection:
            self._thread.snapshot = connection
            try:
                yield connection
            finally:
                self._thread.snapshot = None

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A write transaction: on the disk when the block ends, rolled back if it raises."""
        try:
            with self._writer.begin() as connection:
                yield connection
        except IntegrityError as error:
            raise AlreadyExists("Something with the same name or id was written meanwhile.") from error
        except OperationalError as error:
            if "full" in str(error.orig):
                raise StorageFull("There is no room left for the gallery; searches go on.") from error
            raise

    def forget_log_soon(self) -> None:
        """Empty the write-ahead log within `SCRUB_SECONDS` or as soon as no reader needs it: after a delete,
        it still holds what was deleted."""
        with self._scrubbing:
            if self._scrub is None and not self._closed:
                self._scrub = threading.Timer(SCRUB_SECONDS, self._forget_log)
                self._scrub.daemon = True
                self._scrub.start()

    def _forget_log(self) -> None:
        with self._scrubbing:
            self._scrub = None
        if not self._closed and not empty_log(self.path):
            self.forget_log_soon()

    def _pinned_snapshot(self) -> AbstractContextManager[Connection] | None:
        connection = getattr(self._thread, "snapshot", None)
        return nullcontext(connection) if connection else None

    def _autocommit_connection(self) -> Connection:
        """This thread's connection without transactions, opened once."""
        if not hasattr(self._thread, "autocommit"):
            self._thread.autocommit = self._autocommit.connect()
            self._opened.append(self._thread.autocommit)
        connection: Connection = self._thread.autocommit
        return connection

    def close(self) -> None:
        """Close all connections; the last one to close empties the write-ahead log."""
        with self._scrubbing:
            self._closed = True
            if self._scrub:
                self._scrub.cancel()
        for connection in self._opened:
            connection.close()
        for engine in (self._autocommit, self._reader, self._writer):
            engine.dispose()
