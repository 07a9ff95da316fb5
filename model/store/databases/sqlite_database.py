"""A database in one file of SQLite: opened, read, written in turns, and scrubbed of what was deleted."""

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO

from sqlalchemy import Connection, Update
from sqlalchemy.ext.compiler import compiles

from sameface.model.errors import StoreRefused
from sameface.model.files import (
    exclusive_lock,
    hold_shared_lock,
    make_exclusive,
    make_private_file,
    make_private_folder,
)
from sameface.model.store.databases.database import Database, DrawnKeys, Now, Rows, StillHeld
from sameface.model.store.databases.face_rows import select_faces, to_block
from sameface.model.store.databases.new_rows import list_values, write_insert
from sameface.model.store.databases.sqlite import (
    WRITABLE,
    choose_mode,
    count_orphans,
    empty_log,
    find_damage,
    open_engine,
)
from sameface.model.store.records import Collection, FaceBlock

SCRUB_SECONDS = 5.0


class SqliteDatabase(Database):
    """A database in one file, which may only be read, or be moved while it is open."""

    def __init__(self, path: Path) -> None:
        super().__init__()
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
        self.reader = open_engine(path, "BEGIN", mode)
        self._writer = open_engine(path, "BEGIN IMMEDIATE", mode).execution_options(database=self)
        self._opened: list[Connection] = []  # the autocommit connections of all threads

    def newest(self) -> AbstractContextManager[Connection]:
        """This thread's connection without transactions, opened once."""
        self.check()
        if not hasattr(self.thread, "autocommit"):
            self.thread.autocommit = self._autocommit.connect()
            self._opened.append(self.thread.autocommit)
        return nullcontext(self.thread.autocommit)

    @contextmanager
    def writing(self, **_: bool) -> Iterator[Connection]:
        """A write transaction: on the disk when the block ends, rolled back if it raises; always alone."""
        self.refuse_read_only()
        self.check()  # a new connection would replay this database's log into a file that replaced it
        with self._writer.begin() as connection:
            yield connection
            self.check()  # what is written into a file without a name is lost

    @contextmanager
    def locked(self, name: str, *, wait: bool = False) -> Iterator[StillHeld | None]:
        """Hold the lock `name` between all processes; that of a file is held as long as its process lives."""
        with exclusive_lock(self.path.with_suffix(f".{name}"), wait=wait) as held:
            yield (lambda: True) if held else None

    @contextmanager
    def claimed(self) -> Iterator[Connection]:
        """The only connection to the database, in no transaction; raises if anybody else has it open."""
        self.refuse_read_only()
        if not (self._use and make_exclusive(self._use)):
            raise StoreRefused(f"{self.path} is in use: stop the server, or the command, that has it open.")
        with self._writer.connect() as connection:
            yield connection

    def read_counters(self, connection: Connection) -> dict[str, int]:
        """By table: the last number that was drawn for its key; none is ever drawn again."""
        rows = connection.exec_driver_sql("SELECT name, seq FROM sqlite_sequence")
        return {row.name: row.seq for row in rows}

    def update_and_draw(
        self, connection: Connection, statement: Update, values: Mapping[str, Any], drawn: DrawnKeys
    ) -> tuple[Sequence[Any], list[list[int]]]:
        """The row that an UPDATE returns, and for each table the keys after the last ones that were drawn.

        There is one write transaction at a time, so the keys follow from SQLite's counters.
        """
        last = self.read_counters(connection)
        first = {table: last.get(table.name, 0) + 1 for table in drawn}
        keys = [list(range(first[table], first[table] + values[name])) for table, name in drawn.items()]
        return connection.execute(statement, values).one(), keys

    def append(self, connection: Connection, rows: Rows) -> None:
        """Insert rows into tables, in the order of the tables; those of `REPLACED` may replace one."""
        for table, some in rows.items():
            if some:
                columns = list(some[0])
                statement = write_insert(table, columns, [["?"] * len(columns)])
                values = [tuple(row) for row in list_values(table, some, json.dumps)]
                connection.exec_driver_sql(statement, values)

    def set_counters(self, connection: Connection, counters: dict[str, int]) -> None:
        """Have the keys of each table go on after its counter."""
        connection.exec_driver_sql("DELETE FROM sqlite_sequence")
        connection.exec_driver_sql(
            "INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", [*counters.items()]
        )

    def read_faces(self, connection: Connection, collection: Collection, rows: int) -> Iterator[FaceBlock]:
        """All faces of a collection in the order of their keys, in blocks of up to `rows` faces."""
        wanted = select_faces(collection).execution_options(yield_per=rows)
        for some in connection.execute(wanted).partitions():
            yield to_block(some, collection.dimension)

    def folder_of(self, _: str) -> Path:
        """The folder of the file."""
        return self.path.parent

    def find_damage(self, connection: Connection) -> list[str]:
        """The faults that SQLite finds in the database file."""
        return find_damage(connection)

    def count_orphans(self, connection: Connection) -> int:
        """The number of rows whose foreign key leads nowhere."""
        return count_orphans(connection)

    def check(self) -> None:
        """Raise if the path no longer leads to the file that was opened: it was deleted or replaced."""
        if self._moved():
            raise StoreRefused(
                "The gallery's file was deleted or replaced while it was open: put it back, or restart."
            )

    def refuse_read_only(self) -> None:
        """Raise if the file or its folder may only be read."""
        if self.read_only:
            raise StoreRefused(f"{self.path} and its folder may only be read here: nothing was written.")

    def forget_log_soon(self) -> None:
        """Empty the write-ahead log within `SCRUB_SECONDS` or as soon as no reader needs it: after a delete,
        it still holds what was deleted."""
        with self._scrubbing:
            if self._scrub is None and not self._closed:
                self._scrub = threading.Timer(SCRUB_SECONDS, self._forget_log)
                self._scrub.daemon = True
                self._scrub.start()

    def close(self) -> None:
        """Close all connections, and empty the write-ahead log if that was promised: others may keep it."""
        with self._scrubbing:
            self._closed = True
            promised = self._scrub
            if promised:
                promised.cancel()
        for connection in self._opened:
            connection.close()
        for engine in (self._autocommit, self.reader, self._writer):
            engine.dispose()
        until = time.monotonic() + SCRUB_SECONDS
        while promised and not self._moved() and not empty_log(self.path) and time.monotonic() < until:
            time.sleep(0.1)  # a reader needs it
        if self._use:
            self._use.close()

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
            raise StoreRefused(
                f"{self.path} is being restored or moved: wait until that has ended."
            ) from None

    def _moved(self) -> bool:
        return identify_file(self.path) != self._file


def lock_of(path: Path) -> Path:
    """The lock file of a database: shared by all processes that have it open, exclusive for a restore."""
    return path.with_suffix(".inuse")


def identify_file(path: Path) -> tuple[int, int] | None:
    """The device and the number of the file at `path`; None if there is none. Takes two microseconds."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


@compiles(Now, "sqlite")
def compile_now(*_: Any, **__: Any) -> str:
    """Seconds with a fraction, which `unixepoch` has only since SQLite 3.42."""
    return "((julianday('now') - 2440587.5) * 86400.0)"
