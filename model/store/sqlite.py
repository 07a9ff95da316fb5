"""What is particular to SQLite: its pragmas, how its transactions begin, and its check of the file."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DatabaseError, OperationalError
from sqlalchemy.pool import NullPool, QueuePool

BUSY_SECONDS = 30
PRAGMAS = (
    "journal_mode = WAL",
    "synchronous = FULL",
    "foreign_keys = ON",
    "secure_delete = ON",  # what was deleted is overwritten with zeros
)
MOST_FAULTS = 20  # that the integrity check lists
DATABASE_ERRORS = (DatabaseError, sqlite3.DatabaseError)


def open_engine(path: Path, begin: str | None) -> Engine:
    """An engine whose transactions start with the statement `begin`; None means autocommit."""
    engine = create_engine(
        f"sqlite:///{path}",
        connect_args={"timeout": BUSY_SECONDS},
        isolation_level=None if begin else "AUTOCOMMIT",
        hide_parameters=True,  # no name, metadata or embedding in an error, and so in a log
        poolclass=QueuePool if begin else NullPool,  # an autocommit connection stays with its thread
        **({"max_overflow": -1} if begin else {}),  # as many connections as there are threads
    )

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # the driver must not begin transactions of its own
        for pragma in PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")

    if begin:
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
    return engine


def empty_log(path: Path) -> bool:
    """Write the write-ahead log into the database and truncate it; False if a reader or writer needs it."""
    with closing(sqlite3.connect(path, timeout=0.1)) as connection:
        try:
            busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except sqlite3.OperationalError:
            return False
    return bool(busy == 0)


def find_damage(connection: Connection) -> list[str]:
    """The faults that SQLite finds in the database file."""
    rows = connection.exec_driver_sql(f"PRAGMA integrity_check({MOST_FAULTS})").scalars()
    return [fault for fault in rows if fault != "ok"]


def count_orphans(connection: Connection) -> int:
    """The number of rows whose foreign key leads nowhere."""
    return len(connection.exec_driver_sql("PRAGMA foreign_key_check").all())


def describe_damage(error: Exception) -> str | None:
    """The message of a database error that means a damaged file; None if it is only locked or full."""
    if isinstance(error, OperationalError | sqlite3.OperationalError):
        return None
    return describe_reason(error)


def is_read_only(error: Exception) -> bool:
    """Whether one of `DATABASE_ERRORS` says that the file, or its folder, must not be written."""
    reason = describe_reason(error)
    return "readonly" in reason or "unable to open" in reason


def describe_reason(error: Exception) -> str:
    """SQLite's own words, without the statement that SQLAlchemy adds."""
    return str(getattr(error, "orig", error))
