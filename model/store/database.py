"""Connections to the database: snapshots to read, one writer at a time, commits that are on the disk."""

import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import BinaryIO

from sqlalchemy import Connection, inspect

from sameface.model.errors import StoreRefused
from sameface.model.files import hold_shared_lock, make_private_file, make_private_folder
from sameface.model.store.sqlite import WRITABLE, choose_mode, empty_log, open_engine

SCRUB_SECONDS = 5.0


class Database:
    """One database, read in snapshots and written in turns, by any number of threads and processes."""

    def __init__(self, path: Path) -> None:
        mode = choose_mode(path)
        self.path = path
        self.read_only = mode != WRITABLE
        if not self.read_only:
            make_private_folder(path.parent)
        self._use = self._hold()
        if not self.read_only:
            make_private_file(path)  # its WAL gets the same mode
        self._file = identify_file(path)
        self._scrub: threading.Timer | None = None
        self._scrubbing = threading.Lock()
        self._closed = False
        self._autocommit = open_engine(path, None, mode)
        self._reader = open_engine(path, "BEGIN", mode)
        self._writer = open_engine(path, "BEGIN IMMEDIATE", mode)
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
        if pinned := self._pinned_snapshot():
            return pinned
        self.refuse_moved()
        return self._reader.begin()

    @contextmanager
    def pinned(self) -> Iterator[Connection]:
        """One snapshot for everything that this thread reads in the block."""
        self.refuse_moved()
        with self._reader.begin() as connection:
            self._thread.snapshot = connection
            try:
                yield connection
            finally:
                self._thread.snapshot = None

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A write transaction: on the disk when the block ends, rolled back if it raises."""
        self.refuse_read_only()
        self.refuse_moved()  # a new connection would replay this database's log into a file that replaced it
        with self._writer.begin() as connection:
            yield connection
            self.refuse_moved()  # what is written into a file without a name is lost

    def refuse_read_only(self) -> None:
        """Raise if the file or its folder may only be read."""
        if self.read_only:
            raise StoreRefused(f"{self.path} and its folder may only be read here: nothing was written.")

    def refuse_moved(self) -> None:
        """Raise if the path no longer leads to the file that was opened: it was deleted or replaced."""
        if self._moved():
            raise StoreRefused(
                "The gallery's file was deleted or replaced while it was open: put it back, or restart."
            )

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
        if not self._closed and not self._moved() and not empty_log(self.path):
            self.forget_log_soon()

    def _hold(self) -> BinaryIO | None:
        """The lock that keeps a restore away; None where its file is missing and none can be made."""
        lock = lock_of(self.path)
        if self.read_only and not lock.exists():
            return None
        try:
            return hold_shared_lock(lock)
        except BlockingIOError:
            raise StoreRefused(f"A backup is being restored to {self.path}: wait for it to end.") from None

    def _moved(self) -> bool:
        return identify_file(self.path) != self._file

    def _pinned_snapshot(self) -> AbstractContextManager[Connection] | None:
        connection = getattr(self._thread, "snapshot", None)
        return nullcontext(connection) if connection else None

    def _autocommit_connection(self) -> Connection:
        """This thread's connection without transactions, opened once."""
        self.refuse_moved()
        if not hasattr(self._thread, "autocommit"):
            self._thread.autocommit = self._autocommit.connect()
            self._opened.append(self._thread.autocommit)
        connection: Connection = self._thread.autocommit
        return connection

    def close(self) -> None:
        """Close all connections, and empty the write-ahead log if that was promised: others may keep it."""
        with self._scrubbing:
            self._closed = True
            promised = self._scrub
            if promised:
                promised.cancel()
        for connection in self._opened:
            connection.close()
        for engine in (self._autocommit, self._reader, self._writer):
            engine.dispose()
        until = time.monotonic() + SCRUB_SECONDS
        while promised and not self._moved() and not empty_log(self.path) and time.monotonic() < until:
            time.sleep(0.1)  # a reader needs it
        if self._use:
            self._use.close()


def lock_of(path: Path) -> Path:
    """The file that whoever has the database open holds a shared lock on, and a restore an exclusive one."""
    return path.with_suffix(".inuse")


@contextmanager
def peeking(path: Path, table: str) -> Iterator[Connection | None]:
    """A snapshot of a database that may not exist or be older; None without one, or without the `table`.

    It takes no lock and migrates nothing, because comparing two photos must not wait for a gallery's writers.
    """
    try:
        if not path.exists():
            yield None
            return
        with closing(Database(path)) as database, database.reading() as connection:
            yield connection if inspect(connection).has_table(table) else None
    except OSError as error:
        raise StoreRefused(f"{path} cannot be opened: {error.strerror}.") from error


def identify_file(path: Path) -> tuple[int, int] | None:
    """The device and the number of the file at `path`; None if there is none. Takes two microseconds."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
