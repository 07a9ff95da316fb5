"""How connections to PostgreSQL are opened: with time limits, in pools, and never to another encoding."""

import select
from contextlib import suppress
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import InvalidatePoolError

from sameface.model.errors import StoreRefused, StoreUnavailable
from sameface.model.store.databases.postgres.notices import Connect
from sameface.model.store.databases.postgres.postgres_errors import NO_URL, name_failure, unavailable

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
IN_USE = "in use"  # the lock that every connection shares, and that whoever claims the database holds alone
LOCK_KEY = "hashtextextended('sameface ' || current_schema() || ' ' || :name, 0)"


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


def refuse_closed(connection: psycopg.Connection[Any], *_: Any) -> None:
    """Have a pooled connection replaced if the server has closed it: only then is there something to read."""
    look = select.poll()  # select.select() takes no file descriptor above 1023
    look.register(connection.fileno(), select.POLLIN)
    if look.poll(0):
        raise InvalidatePoolError


def is_there(connection: Connection) -> bool:
    """Whether the server still has this connection, and with it the locks that it holds."""
    with suppress(StoreUnavailable):
        return not connection.invalidated and bool(connection.execute(text("SELECT true")).scalar_one())
    return False
