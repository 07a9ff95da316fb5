"""What is particular to PostgreSQL: its transactions, its locks, its clock and its types."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import Connection, Engine, Update, text
from sqlalchemy.ext.compiler import compiles

from sameface.model.data_folder import SharedGallery
from sameface.model.errors import StoreRefused, StoreUnavailable
from sameface.model.store.databases.database import Database, DrawnKeys, Now, Rows, StillHeld
from sameface.model.store.databases.postgres.notices import Announcer, listen
from sameface.model.store.databases.postgres.postgres_connections import (
    IN_USE,
    KEYED,
    LOCK_KEY,
    connect,
    is_there,
    open_engine,
    read_url,
)
from sameface.model.store.databases.postgres.postgres_errors import name_failure
from sameface.model.store.databases.postgres.postgres_rows import add_keys, append_rows, copy_faces
from sameface.model.store.databases.tables import COUNTED, Text
from sameface.model.store.records import Collection, FaceBlock

UNTIMED = "SET LOCAL statement_timeout = 0"
PATIENT = f"""
{UNTIMED};
SET LOCAL lock_timeout = 0;
SET LOCAL plan_cache_mode = auto;
SET LOCAL enable_seqscan = on;
"""
CLAIM = """
SET lock_timeout = '3s';
SET statement_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
RESET plan_cache_mode;
RESET enable_seqscan;
"""


class PostgresDatabase(Database):
    """A database on a server that any number of machines share; collections are written in parallel."""

    def __init__(self, place: SharedGallery) -> None:
        super().__init__()
        self._folder = place.folder
        self._connect = partial(connect, read_url(place.url))
        self._announcer = Announcer(self._connect)
        by_key = partial(self._connect, settings=KEYED)
        self._writer = open_engine(by_key).execution_options(database=self)
        self._autocommit = open_engine(
            by_key,
            isolation_level="AUTOCOMMIT",
            pool_reset_on_return=None,
            skip_autocommit_rollback=True,
        )
        self.reader = open_engine(self._connect).execution_options(
            database=self, isolation_level="REPEATABLE READ", postgresql_readonly=True
        )

    def newest(self) -> AbstractContextManager[Connection]:
        """A connection for one SELECT of the newest state."""
        return self._autocommit.connect()

    @contextmanager
    def writing(self, *, patient: bool = False, alone: bool = False) -> Iterator[Connection]:
        """A write transaction: on the server's disk when the block ends, rolled back if it raises.

        Writers lock the row of the collection that they write to, so those of others go on.
        """
        changed = self.thread.changed = set[int]()
        with self._writer.begin() as connection:
            if patient:
                connection.execute(text(PATIENT))
            if alone:
                connection.execute(text(f"SELECT pg_advisory_xact_lock({LOCK_KEY})"), {"name": "alone"})
            yield connection
        for collection in changed:  # whoever hears of them earlier would not find them
            self._announcer.announce(collection)

    @contextmanager
    def pinned(self) -> Iterator[Connection]:
        """One snapshot for everything that this thread reads in the block: upkeep, which may take long."""
        with super().pinned() as connection:
            connection.execute(text(UNTIMED))
            yield connection

    @contextmanager
    def locked(self, name: str, *, wait: bool = False) -> Iterator[StillHeld | None]:
        """Hold an advisory lock, which ends with its connection, however the process dies."""
        with self._autocommit.connect() as connection:
            connection.detach()  # it is closed at the end, however that comes, and what was set ends with it
            if wait:
                connection.execute(text("SET statement_timeout = 0; SET lock_timeout = 0"))
                connection.execute(text(f"SELECT pg_advisory_lock({LOCK_KEY})"), {"name": name})
                held = True
            else:
                lock = text(f"SELECT pg_try_advisory_lock({LOCK_KEY})")
                held = bool(connection.execute(lock, {"name": name}).scalar_one())
            try:
                yield partial(is_there, connection) if held else None
            finally:
                if held and not connection.invalidated:
                    with suppress(StoreUnavailable):
                        connection.execute(text(f"SELECT pg_advisory_unlock({LOCK_KEY})"), {"name": name})

    @contextmanager
    def claimed(self) -> Iterator[Connection]:
        """The only connection to the database, in no transaction; raises if anybody else has it open."""
        for engine in self._engines:
            engine.dispose()  # this process's other connections have it open, too
        with self._writer.connect() as connection:
            connection.detach()
            connection.execute(text(CLAIM))
            try:
                connection.execute(text(f"SELECT pg_advisory_lock({LOCK_KEY})"), {"name": IN_USE})
            except StoreUnavailable:
                raise StoreRefused(
                    "The gallery's database is in use: stop the servers and commands that have it open."
                ) from None
            connection.commit()
            yield connection

    def read_counters(self, connection: Connection) -> dict[str, int]:
        """By table: the last number that was drawn for its key; none is ever drawn again."""
        last = text("SELECT pg_sequence_last_value(pg_get_serial_sequence(:table, :column))")
        return {
            table: connection.execute(last, {"table": table, "column": column}).scalar_one() or 0
            for table, column in COUNTED.items()
        }

    def set_counters(self, connection: Connection, counters: dict[str, int]) -> None:
        """Have the keys of each table go on after its counter."""
        last = text("SELECT setval(pg_get_serial_sequence(:table, :column), :last)")
        for table, column in COUNTED.items():
            if counters[table]:
                connection.execute(last, {"table": table, "column": column, "last": counters[table]})

    def update_and_draw(
        self, connection: Connection, statement: Update, values: Mapping[str, Any], drawn: DrawnKeys
    ) -> tuple[Sequence[Any], list[list[int]]]:
        """The row that an UPDATE returns, which also has the new keys of each table of `drawn`."""
        row = connection.execute(add_keys(statement, tuple(drawn.items())), dict(values)).one()
        return row, list(row[-len(drawn) :])

    def append(self, connection: Connection, rows: Rows) -> None:
        """Insert rows into tables: a few by one statement for all tables, many by COPY."""
        try:
            append_rows(connection, rows)
        except psycopg.Error as error:
            raise name_failure(error) or error from None

    def read_faces(self, connection: Connection, collection: Collection, rows: int) -> Iterator[FaceBlock]:
        """All faces of a collection in the order of their keys, in blocks of up to so many `rows`.

        It is one statement, in which the caller's pace counts: it has no time limit.
        """
        connection.execute(text(UNTIMED))
        try:
            yield from copy_faces(connection, collection, rows)
        except psycopg.Error as error:
            raise name_failure(error) or error from None

    def announce(self, collection: int) -> None:
        """Have other machines know, once this thread's transaction has ended well, that it has changed."""
        self.thread.changed.add(collection)

    def listen(self, hear: Callable[[int], None], closing: threading.Event) -> None:
        """Call `hear` with the key of each collection that others announce, until `closing` is set."""
        listen(self._connect, hear, closing)

    def folder_of(self, store_id: str) -> Path:
        """A folder per store: one data folder may see several."""
        return self._folder / store_id

    def find_damage(self, _: Connection) -> list[str]:
        """None: PostgreSQL's own tools (`pg_amcheck`, checksums) look after its files."""
        return []

    def count_orphans(self, _: Connection) -> int:
        """None: PostgreSQL holds foreign keys whatever a client sets."""
        return 0

    def check(self) -> None:
        """Nothing to look at before a statement: a connection that is gone is noticed when it is used."""

    def refuse_read_only(self) -> None:
        """Nothing to refuse: what may not be written, the server refuses."""

    def forget_log_soon(self) -> None:
        """Nothing to empty: the log and its copies are the operator's."""

    def close(self) -> None:
        """Close all connections."""
        self._announcer.close()
        for engine in self._engines:
            engine.dispose()

    @property
    def _engines(self) -> tuple[Engine, ...]:
        return self._autocommit, self._writer, self.reader


@compiles(Now, "postgresql")
def compile_now(*_: Any, **__: Any) -> str:
    """Seconds by the server's clock, at the moment of the statement."""
    return "extract(epoch FROM clock_timestamp())::float8"


@compiles(Text, "postgresql")
def compile_text(*_: Any, **__: Any) -> str:
    """Text that is compared byte by byte, so that pages by id are the same as with SQLite."""
    return 'VARCHAR COLLATE "C"'
