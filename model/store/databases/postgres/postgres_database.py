"""What is particular to PostgreSQL: its connections, its locks, its clock, its types and its errors."""

import select
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import Connection, Engine, Update, create_engine, event, text
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import InvalidatePoolError
from sqlalchemy.ext.compiler import compiles

from sameface.model.data_folder import SharedGallery
from sameface.model.errors import StoreRefused, StoreUnavailable
from sameface.model.store.databases.database import Database, DrawnKeys, Now, Rows, StillHeld
from sameface.model.store.databases.postgres.notices import Announcer, Connect, listen
from sameface.model.store.databases.postgres.postgres_errors import NO_URL, name_failure, unavailable
from sameface.model.store.databases.postgres.postgres_rows import add_keys, append_rows, copy_faces
from sameface.model.store.databases.tables import COUNTED, Text
from sameface.model.store.records import Collection, FaceBlock

POOL = 8  # connections that are kept open; there are as many as threads that need one
STATEMENT_SECONDS = 30
LOCK_SECONDS = 25

# What a URL may override. Of a connection that was cut, both sides are to know soon: the server, because it
# holds the locks of a writer that is gone.
DEFAULTS: dict[str, Any] = {
    "application_name": "sameface",
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    "client_encoding": "utf8",
}
SESSION = f"""
SET statement_timeout = '{STATEMENT_SECONDS}s';
SET lock_timeout = '{LOCK_SECONDS}s';
SET idle_in_transaction_session_timeout = '10min';
SET idle_session_timeout = 0; -- a lock ends with its connection
SET tcp_keepalives_idle = 10;
SET tcp_keepalives_interval = 5;
SET tcp_keepalives_count = 3;
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off';
"""
# Of connections whose statements find rows by their keys: they need no new plan for each number of keys, and
# one that was made while a table was small must not read all of it.
KEYED = """
SET plan_cache_mode = force_generic_plan;
SET enable_seqscan = off;
"""
PATIENT = """
SET LOCAL statement_timeout = 0;
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
IN_USE = "in use"  # the lock that every connection shares, and that whoever claims the database holds alone
LOCK_KEY = "hashtextextended('sameface ' || current_schema() || ' ' || :name, 0)"


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
        with self._writer.begin() as connection:
            if patient:
                connection.execute(text(PATIENT))
            if alone:
                connection.execute(text(f"SELECT pg_advisory_xact_lock({LOCK_KEY})"), {"name": "alone"})
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
        """All faces of a collection in the order of their keys, in blocks of up to `rows` faces."""
        try:
            yield from copy_faces(connection, collection, rows)
        except psycopg.Error as error:
            raise name_failure(error) or error from None

    def announce(self, collection: int) -> None:
        """Have other machines know soon that the collection with this key has changed."""
        self._announcer.announce(collection)

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


def read_url(url: str) -> dict[str, Any]:
    """The parameters of connections to the database of this URL."""
    try:
        return DEFAULTS | conninfo_to_dict(url)
    except psycopg.ProgrammingError:  # quotes the URL, which may hold a password
        raise StoreRefused(NO_URL) from None


def open_engine(open_connection: Connect, **options: Any) -> Engine:
    """An engine whose connections are pooled, and opened when they are needed."""
    engine = create_engine(
        "postgresql+psycopg://",
        creator=open_connection,
        hide_parameters=True,  # no name, metadata or embedding in an error, and so in a log
        pool_size=POOL,
        max_overflow=-1,
        pool_use_lifo=True,
        **options,
    )
    event.listen(engine, "checkout", refuse_closed)

    @event.listens_for(engine, "handle_error")
    def name_the_reason(context: ExceptionContext) -> None:
        if named := name_failure(context.original_exception):
            raise named from None  # the driver's sentence quotes rows, hosts and users

    return engine


def connect(parameters: dict[str, Any], settings: str = "") -> psycopg.Connection[Any]:
    """A connection with this project's time limits and `settings`, whose commits are on the server's disk."""
    connection = psycopg.connect(**parameters, autocommit=True)
    try:
        connection.execute(SESSION + settings)
        if connection.info.parameter_status("server_encoding") != "UTF8":
            raise StoreRefused("The database must be made with ENCODING 'UTF8': names are in any script.")
        share = f"SELECT pg_try_advisory_lock_shared({LOCK_KEY.replace(':name', '%s')})"
        if connection.execute(share, [IN_USE]).fetchone() == (False,):
            raise unavailable("is being moved")
        connection.autocommit = False
    except BaseException:
        connection.close()
        raise
    return connection


def is_there(connection: Connection) -> bool:
    """Whether the server still has this connection, and with it the locks that it holds."""
    with suppress(StoreUnavailable):
        return not connection.invalidated and bool(connection.execute(text("SELECT true")).scalar_one())
    return False


def refuse_closed(connection: psycopg.Connection[Any], *_: Any) -> None:
    """Have a pooled connection replaced if the server has closed it: only then is there something to read."""
    look = select.poll()  # select.select() takes no file descriptor above 1023
    look.register(connection.fileno(), select.POLLIN)
    if look.poll(0):
        raise InvalidatePoolError


@compiles(Now, "postgresql")
def compile_now(*_: Any, **__: Any) -> str:
    """Seconds by the server's clock, at the moment of the statement."""
    return "extract(epoch FROM clock_timestamp())::float8"


@compiles(Text, "postgresql")
def compile_text(*_: Any, **__: Any) -> str:
    """Text that is compared byte by byte, so that pages by id are the same as with SQLite."""
    return 'VARCHAR COLLATE "C"'
