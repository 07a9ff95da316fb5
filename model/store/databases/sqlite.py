"""What is particular to SQLite: how it opens a file, its pragmas, its errors, and its check of the file."""

import errno
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.pool import NullPool, QueuePool

from sameface.model.errors import AlreadyExists, SamefaceError, StorageFull, StoreRefused
from sameface.model.store.databases.database import damaged

BUSY_SECONDS = 30
PRAGMAS = (
    "journal_mode = WAL",
    "synchronous = FULL",
    "foreign_keys = ON",
    "secure_delete = ON",  # what was deleted is overwritten with zeros
)
MOST_FAULTS = 20  # that the integrity check lists
PAGES_AT_ONCE = 1_000  # copied between two reports of progress

TAKEN = (sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY)
DAMAGED = (
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_CONSTRAINT,  # a row is gone that others need
)
NO_TEXT = "text is no UTF-8"

# How SQLite opens the file. None of them makes a new file where somebody has deleted the old one.
WRITABLE, READABLE, UNCHANGING = "mode=rw", "mode=ro", "mode=ro&immutable=1"


def choose_mode(path: Path) -> str:
    """How to open the file: to write too, unless the file or its folder may only be read.

    Where nobody may make the files beside it, SQLite reads a database with a write-ahead log only if they are
    there, or if it is told that nothing changes. Without a log nobody has the database open, and everything
    is in the one file: that is read as it is. With a log it must not be, because the log has commits too.
    """
    if not path.exists() or (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        return WRITABLE
    return READABLE if path.with_name(f"{path.name}-wal").exists() else UNCHANGING


def connect(path: Path, mode: str, seconds: float = BUSY_SECONDS) -> sqlite3.Connection:
    """A connection that waits up to `seconds` for others, for any thread to use."""
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?{mode}", uri=True, timeout=seconds, check_same_thread=False
    )


def open_engine(path: Path, begin: str | None, mode: str = WRITABLE) -> Engine:
    """An engine whose transactions start with the statement `begin`; None means autocommit."""
    engine = create_engine(
        "sqlite://",
        creator=lambda: connect(path, mode),
        isolation_level=None if begin else "AUTOCOMMIT",
        hide_parameters=True,  # no name, metadata or embedding in an error, and so in a log
        json_deserializer=read_json,
        poolclass=QueuePool if begin else NullPool,  # an autocommit connection stays with its thread
        **({"max_overflow": -1} if begin else {}),  # as many connections as there are threads
    )

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # the driver must not begin transactions of its own
        try:
            for pragma in PRAGMAS if mode == WRITABLE else ():
                connection.execute(f"PRAGMA {pragma}")
        except UnicodeDecodeError:  # of an error's message, which quotes the schema
            raise damaged(NO_TEXT) from None

    @event.listens_for(engine, "handle_error")
    def name_the_reason(context: ExceptionContext) -> None:
        if named := name_failure(context.original_exception):
            raise named

    if begin:
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
    return engine


def name_failure(error: BaseException) -> SamefaceError | None:
    """The failure that a caller can act on, in a sentence without anything from a row; None for others."""
    if isinstance(error, UnicodeDecodeError) or "decode to UTF-8" in str(error):
        if isinstance(error, sqlite3.Error):
            error.args = (NO_TEXT,)  # the driver quotes the text, which may be a name
        return damaged(NO_TEXT)
    code = getattr(error, "sqlite_errorcode", 0)
    match code & 0xFF:  # the lower byte is the kind of an error
        case sqlite3.SQLITE_CONSTRAINT if code in TAKEN:
            return AlreadyExists("Something with the same name or id was written meanwhile.")
        case kind if kind in DAMAGED or "no such" in str(error):  # table or column: statements never change
            return damaged(str(error))
        case sqlite3.SQLITE_FULL:
            return StorageFull("There is no room left for the gallery; searches go on.")
        case sqlite3.SQLITE_READONLY:
            return StoreRefused("The gallery's file, or its folder, must not be written.")
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_IOERR:
            return StoreRefused(f"The gallery's file cannot be read or written: {error}.")
    return None


def read_json(text: str) -> Any:
    """A JSON column's value; only JSON is written into one."""
    try:
        return json.loads(text)
    except ValueError:
        raise damaged("metadata is no JSON") from None


def empty_log(path: Path) -> bool:
    """Write the write-ahead log into the database and truncate it; False if a reader or writer needs it."""
    try:
        with closing(connect(path, WRITABLE, 0.1)) as connection:
            busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.OperationalError:
        return False
    except sqlite3.DatabaseError:  # damaged: what reads it next says so
        return True
    return bool(busy == 0)


def leave_log(path: Path) -> None:
    """Write the write-ahead log into the database and delete it; raises if anybody has the database open.

    A damaged database is left as it is.
    """
    try:
        with closing(connect(path, WRITABLE, 0.1)) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")  # which needs the database for itself
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_BUSY:
            raise StoreRefused(f"{path} is in use: stop whatever has it open.") from error
        if code not in DAMAGED:
            raise name_failure(error) or error from error


def copy_database(connection: Connection, path: Path, progress: Callable[[int, int], None]) -> None:
    """Copy the database as the transaction of `connection` sees it into the empty file `path`.

    Because all is read in that one transaction, no write makes the copy start anew, and none waits for it.
    `progress` is called with the bytes that are copied and those in all.
    """
    source: Any = connection.connection.driver_connection
    page_bytes = connection.exec_driver_sql("PRAGMA page_size").scalar_one()

    def report(_: int, left: int, pages: int) -> None:
        progress((pages - left) * page_bytes, pages * page_bytes)

    try:
        with closing(connect(path, WRITABLE)) as target:
            for pragma in ("journal_mode = OFF", "synchronous = OFF"):  # the caller syncs the whole file
                target.execute(f"PRAGMA {pragma}")
            source.backup(target, pages=PAGES_AT_ONCE, progress=report)
    except sqlite3.OperationalError as error:
        full = error.sqlite_errorcode == sqlite3.SQLITE_FULL
        raise (
            OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) if full else OSError(errno.EIO, str(error))
        ) from error
    except sqlite3.DatabaseError as error:
        raise name_failure(error) or error from error


@contextmanager
def reading_file(path: Path) -> Iterator[Connection]:
    """Yield a connection that only reads the file: no other process may have the database open."""
    engine = open_engine(path, None, UNCHANGING)
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


def find_damage(connection: Connection, check: str = "integrity_check") -> list[str]:
    """The faults that SQLite finds in the database file; `quick_check` does not compare indexes to tables."""
    rows = connection.exec_driver_sql(f"PRAGMA {check}({MOST_FAULTS})").scalars()
    return [fault for fault in rows if fault != "ok"]


def count_orphans(connection: Connection) -> int:
    """The number of rows whose foreign key leads nowhere."""
    return len(connection.exec_driver_sql("PRAGMA foreign_key_check").all())
