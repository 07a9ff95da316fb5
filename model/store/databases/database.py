"""What the store asks of a database: snapshots to read, writes in turns, commits that are on the disk."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeAlias

from sqlalchemy import Connection, Engine, Float, Table, Update
from sqlalchemy.sql.functions import FunctionElement

from sameface.model.errors import StoreDamaged
from sameface.model.store.records import Collection, FaceBlock

# By table: rows to insert; the first row of a table has all the columns that are to be set.
Rows: TypeAlias = Mapping[Table, Sequence[Mapping[str, Any]]]

# By table: the name of the value that says how many keys of it are to be drawn.
DrawnKeys: TypeAlias = Mapping[Table, str]

# Says whether a lock is still held: one on a server ends with its connection.
StillHeld: TypeAlias = Callable[[], bool]

# The names of the locks between processes.
OPENING = "opening"  # create the tables, or bring them to this version
UPKEEP = "lock"  # make drafts


class Database(ABC):
    """One database, read in snapshots and written in turns, by any number of threads and processes.

    `sqlite_database.py` and `postgres/postgres_database.py` each have one kind. All statements are portable:
    what only one kind knows is behind the abstract methods, and in how it compiles `Text`, `Key` and `Now`.
    """

    read_only = False
    reader: Engine  # whose transactions are snapshots

    def __init__(self) -> None:
        self.thread = threading.local()  # a thread's pinned snapshot, and what else a kind keeps for it

    @abstractmethod
    def newest(self) -> AbstractContextManager[Connection]:
        """A connection for one SELECT of the newest state, even if this thread has pinned an older one."""

    @abstractmethod
    def writing(self, *, patient: bool = False, alone: bool = False) -> AbstractContextManager[Connection]:
        """A write transaction: on the disk when the block ends, rolled back if it raises.

        `patient` is for statements that may take minutes, and are not to be timed out; `alone` for what
        belongs to no collection and is read before it is written: there is one such transaction at a time.
        """

    @abstractmethod
    def locked(self, name: str, *, wait: bool = False) -> AbstractContextManager[StillHeld | None]:
        """Hold the lock `name` between all processes; yields what says whether it still is held.

        Yields None if another process holds it, unless `wait`.
        """

    @abstractmethod
    def claimed(self) -> AbstractContextManager[Connection]:
        """The only connection to the database, in no transaction; raises if anybody else has it open."""

    @abstractmethod
    def read_counters(self, connection: Connection) -> dict[str, int]:
        """By table: the last number that was drawn for its key; none is ever drawn again."""

    @abstractmethod
    def set_counters(self, connection: Connection, counters: dict[str, int]) -> None:
        """Have the keys of each table go on after its counter."""

    @abstractmethod
    def update_and_draw(
        self, connection: Connection, statement: Update, values: Mapping[str, Any], drawn: DrawnKeys
    ) -> tuple[Sequence[Any], list[list[int]]]:
        """The row that an UPDATE returns, and for each table of `drawn` its new keys in rising order.

        `drawn` maps a table to the name in `values` of its number of keys. A server gets one query for both.
        """

    @abstractmethod
    def append(self, connection: Connection, rows: Rows) -> None:
        """Insert rows into tables, in the order of the tables; those of `REPLACED` may replace one."""

    @abstractmethod
    def read_faces(self, connection: Connection, collection: Collection, rows: int) -> Iterator[FaceBlock]:
        """All faces of a collection in the order of their keys, in blocks of up to `rows` faces."""

    def announce(self, collection: int) -> None:  # noqa: B027
        """Have other machines hear, after this thread's `writing()`, that the collection has changed."""

    def listen(  # noqa: B027
        self, hear: Callable[[int], None], closing: threading.Event
    ) -> None:
        """Call `hear` with the key of each collection that others announce, until `closing` is set."""

    @abstractmethod
    def folder_of(self, store_id: str) -> Path:
        """The folder in which this machine keeps its caches of the store with this id."""

    @abstractmethod
    def find_damage(self, connection: Connection) -> list[str]:
        """The faults that the database finds in its own files."""

    @abstractmethod
    def count_orphans(self, connection: Connection) -> int:
        """The number of rows whose foreign key leads nowhere."""

    @abstractmethod
    def close(self) -> None:
        """Close all connections."""

    @abstractmethod
    def check(self) -> None:
        """Raise if the database can no longer be used."""

    @abstractmethod
    def refuse_read_only(self) -> None:
        """Raise if the database may only be read."""

    @abstractmethod
    def forget_log_soon(self) -> None:
        """Empty SQLite's write-ahead log soon, because it still holds what was deleted."""

    def statement(self) -> AbstractContextManager[Connection]:
        """A connection for one SELECT, its own snapshot: a quarter of the cost of a transaction."""
        return self._pinned_snapshot() or self.newest()

    def reading(self) -> AbstractContextManager[Connection]:
        """A read transaction: a snapshot that later writes do not change."""
        if pinned := self._pinned_snapshot():
            return pinned
        self.check()
        return self.reader.begin()

    @contextmanager
    def pinned(self) -> Iterator[Connection]:
        """One snapshot for everything that this thread reads in the block."""
        self.check()
        with self.reader.begin() as connection:
            self.thread.snapshot = connection
            try:
                yield connection
            finally:
                self.thread.snapshot = None

    def _pinned_snapshot(self) -> AbstractContextManager[Connection] | None:
        connection = getattr(self.thread, "snapshot", None)
        return nullcontext(connection) if connection else None


def database_of(connection: Connection) -> Database:
    """The database that a connection belongs to: its engine has the option `database`."""
    database: Database = connection.get_execution_options()["database"]
    return database


class Now(FunctionElement[float]):
    """The seconds since 1970 by the database's clock: it decides, where machines share a database."""

    type: Any = Float()
    inherit_cache = True


def damaged(reason: str) -> StoreDamaged:
    """The error for a database that holds what cannot have been written into it."""
    return StoreDamaged(
        f"The gallery's file is damaged ({reason}): restore a backup. `sameface gallery check` says more.",
        reason=reason,
    )
