"""What is particular to PostgreSQL: its connections, its locks, its clock, its types and its errors."""

import select as waiting
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import Connection, Engine, Table, create_engine, event, text
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import InvalidatePoolError
from sqlalchemy.ext.compiler import compiles

from sameface.model.data_folder import SharedGallery
from sameface.model.errors import (
    AlreadyExists,
    InvalidArgument,
    SamefaceError,
    StorageFull,
    StoreRefused,
    StoreUnavailable,
)
from sameface.model.store.databases.database import Database, Now, Rows, damaged
from sameface.model.store.databases.postgres_rows import append_rows, draw_keys
from sameface.model.store.databases.tables import COUNTED, Text

POOL = 8  # connections that are kept open; there are as many as threads that need one
STATEMENT_SECONDS = 30
LOCK_SECONDS = 25
RETRY_SECONDS = 2

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
SET tcp_keepalives_idle = 10;
SET tcp_keepalives_interval = 5;
SET tcp_keepalives_count = 3;
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off';
"""
CLAIM = """
SET lock_timeout = '3s';
SET statement_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
"""
IN_USE = "in use"  # the lock that every connection shares, and that whoever claims the database holds alone
LOCK_KEY = "hashtextextended('sameface ' || current_schema() || ' ' || :name, 0)"

BUSY = ("40001", "40P01", "55P03", "57014")  # serialization, deadlock, a lock or a statement that timed out
REFUSALS: dict[str, tuple[type[SamefaceError], str]] = {
    "23505": (AlreadyExists, "Something with the same name or id was written meanwhile."),
    "25006": (StoreRefused, "The gallery's database may only be read: nothing was written."),
    "42501": (StoreRefused, "The gallery's database does not let its user do this: grant the rights."),
    "53100": (StorageFull, "There is no room left for the gallery; searches go on."),
}
DAMAGED = ("23", "42P01", "42703", "XX")  # a row, a table or a column is gone that others need; files
NO_URL = (
    "The database's address is no PostgreSQL URL: postgresql://USER:PASSWORD@HOST:5432/NAME, or "
    "postgresql:///NAME?host=/FOLDER/OF/THE/SOCKET."
)
# Said when a connection is refused, for which libpq tells no code.
FORBIDDEN = ("authentication failed", "no password supplied", "pg_hba.conf", "not permitted to log in")
MISSING = ("does not exist", "permission denied")


class PostgresDatabase(Database):
    """A database on a server that any number of machines share; collections are written in parallel."""

    def __init__(self, place: SharedGallery) -> None:
        super().__init__()
        self._folder = place.folder
        self._writer = open_engine(place.url).execution_options(database=self)
        self._autocommit = self._writer.execution_options(isolation_level="AUTOCOMMIT")
        self.reader = self._writer.execution_options(
            isolation_level="REPEATABLE READ", postgresql_readonly=True
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
                connection.execute(text("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0"))
            if alone:
                connection.execute(text(f"SELECT pg_advisory_xact_lock({LOCK_KEY})"), {"name": "alone"})
            yield connection

    @contextmanager
    def locked(self, name: str, *, wait: bool = False) -> Iterator[bool]:
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
                yield held
            finally:
                if held:
                    with suppress(StoreUnavailable):
                        connection.execute(text(f"SELECT pg_advisory_unlock({LOCK_KEY})"), {"name": name})

    @contextmanager
    def claimed(self) -> Iterator[Connection]:
        """The only connection to the database, in no transaction; raises if anybody else has it open."""
        self._writer.dispose()  # this process's other connections have it open, too
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

    def draw_keys(self, connection: Connection, counts: Mapping[Table, int]) -> list[list[int]]:
        """For each table as many new keys as `counts` says, all in one statement."""
        return draw_keys(connection, counts)

    def append(self, connection: Connection, rows: Rows) -> None:
        """Insert rows into tables: a few by one statement for all tables, many by COPY."""
        try:
            append_rows(connection, rows)
        except psycopg.Error as error:
            raise name_failure(error) or error from None

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
        self._writer.dispose()


def open_engine(url: str) -> Engine:
    """An engine whose connections are pooled, and opened when they are needed."""
    try:
        parameters = DEFAULTS | conninfo_to_dict(url)
    except psycopg.ProgrammingError:  # quotes the URL, which may hold a password
        raise StoreRefused(NO_URL) from None
    engine = create_engine(
        "postgresql+psycopg://",
        creator=lambda: connect(parameters),
        hide_parameters=True,  # no name, metadata or embedding in an error, and so in a log
        pool_size=POOL,
        max_overflow=-1,
        pool_use_lifo=True,
    )
    event.listen(engine, "checkout", refuse_closed)

    @event.listens_for(engine, "handle_error")
    def name_the_reason(context: ExceptionContext) -> None:
        if named := name_failure(context.original_exception):
            raise named from None  # the driver's sentence quotes rows, hosts and users

    return engine


def connect(parameters: dict[str, Any]) -> psycopg.Connection[Any]:
    """A connection with this project's time limits, whose commits are on the server's disk."""
    connection = psycopg.connect(**parameters, autocommit=True)
    connection.execute(SESSION)
    if connection.info.parameter_status("server_encoding") != "UTF8":
        connection.close()
        raise StoreRefused("The database must be made with ENCODING 'UTF8': names are in any script.")
    share = f"SELECT pg_try_advisory_lock_shared({LOCK_KEY.replace(':name', '%s')})"
    if connection.execute(share, [IN_USE]).fetchone() == (False,):
        connection.close()
        raise unavailable("is being moved")
    connection.autocommit = False
    return connection


def refuse_closed(connection: psycopg.Connection[Any], *_: Any) -> None:
    """Have a pooled connection opened anew that the server has closed: then there is something to read."""
    if waiting.select([connection.fileno()], [], [], 0)[0]:
        raise InvalidatePoolError


def name_failure(error: BaseException) -> SamefaceError | None:
    """The failure that a caller can act on, in a sentence without anything from a row; None for others."""
    if not isinstance(error, psycopg.Error):
        return None
    state = error.sqlstate or ""
    if state in REFUSALS:
        kind, sentence = REFUSALS[state]
        return kind(sentence)
    if state in BUSY:
        return unavailable("took too long, or another writer was faster")
    if state.startswith(DAMAGED):
        return damaged(f"PostgreSQL's error {state}")
    if isinstance(error, psycopg.DataError) and "NUL" in str(error):
        return InvalidArgument("The gallery's database cannot keep text with a NUL character.")
    return name_refusal(str(error)) if isinstance(error, psycopg.OperationalError) else None


def name_refusal(sentence: str) -> SamefaceError:
    """Why there is no connection: refused for good, or away for now. The URL is in neither."""
    if any(phrase in sentence for phrase in FORBIDDEN):
        return StoreRefused("PostgreSQL refuses the user or the password of the database's URL.")
    if any(phrase in sentence for phrase in MISSING):
        return StoreRefused("PostgreSQL has no such database or user as the database's URL names.")
    return StoreRefused(NO_URL) if "invalid" in sentence else unavailable("cannot be reached")


def unavailable(what: str) -> StoreUnavailable:
    """The error for a database that is away or busy, and will be back."""
    return StoreUnavailable(f"The gallery's database {what}: try again.", retry_after_seconds=RETRY_SECONDS)


@compiles(Now, "postgresql")
def compile_now(*_: Any, **__: Any) -> str:
    """Seconds by the server's clock, at the moment of the statement."""
    return "extract(epoch FROM clock_timestamp())::float8"


@compiles(Text, "postgresql")
def compile_text(*_: Any, **__: Any) -> str:
    """Text that is compared byte by byte, so that pages by id are the same as with SQLite."""
    return 'VARCHAR COLLATE "C"'
