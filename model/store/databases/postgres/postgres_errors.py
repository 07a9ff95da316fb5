"""What PostgreSQL's errors mean to a caller, in sentences without anything from a row or a URL."""

import re

import psycopg

from sameface.model.errors import (
    AlreadyExists,
    InvalidArgument,
    SamefaceError,
    StorageFull,
    StoreRefused,
    StoreUnavailable,
)
from sameface.model.store.databases.database import damaged

RETRY_SECONDS = 2
NOT_LET_IN = "PostgreSQL refuses the user or the password of the database's URL."
NOT_THERE = "PostgreSQL has no such database or user as the database's URL names."
BUSY = ("40001", "40P01", "55P03", "57014")  # serialization, deadlock, a lock or a statement that timed out
REFUSALS: dict[str, tuple[type[SamefaceError], str]] = {
    "23505": (AlreadyExists, "Something with the same name or id was written meanwhile."),
    "25006": (StoreRefused, "The gallery's database may only be read: nothing was written."),
    "28000": (StoreRefused, NOT_LET_IN),
    "28P01": (StoreRefused, NOT_LET_IN),
    "3D000": (StoreRefused, NOT_THERE),
    "42501": (StoreRefused, "The gallery's database does not let its user do this: grant the rights."),
    "53100": (StorageFull, "There is no room left for the gallery; searches go on."),
}
DAMAGED = ("23", "42P01", "42703", "XX")  # a row, a table or a column is gone that others need; files
NO_URL = (
    "The database's address is no PostgreSQL URL: postgresql://USER:PASSWORD@HOST:5432/NAME, or "
    "postgresql:///NAME?host=/FOLDER/OF/THE/SOCKET."
)
# Said when a connection is refused, for which libpq tells no code: by the server in its own language.
FORBIDDEN = ("authentication failed", "no password supplied", "pg_hba.conf", "not permitted to log in")
MISSING = ("does not exist", "permission denied")
PASSING = ("slots", "too many", "starting up", "shutting down", "terminating", "recovery")
UNREADABLE = re.compile(
    r"invalid (\w+ value|port number|connection option)\b"
)  # not a host called `db.invalid`
SAID_BY_SERVER = re.compile(r"connection to server .* failed: \w+:  ")  # after its severity


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
    if not isinstance(error, psycopg.OperationalError):
        return None
    return name_refusal(str(error), after_password=bool(error.pgconn and error.pgconn.used_password))


def name_refusal(sentence: str, *, after_password: bool = False) -> SamefaceError:
    """Why there is no connection: refused for good, or away for now. The URL is in neither.

    `after_password` says that the server had asked for a password and got one: what it says then, in whatever
    language, is about that, unless it is known to pass.
    """
    if any(phrase in sentence for phrase in FORBIDDEN):
        return StoreRefused(NOT_LET_IN)
    if any(phrase in sentence for phrase in MISSING):
        return StoreRefused(NOT_THERE)
    if UNREADABLE.search(sentence):
        return StoreRefused(NO_URL)
    if after_password and SAID_BY_SERVER.search(sentence) and not any(each in sentence for each in PASSING):
        return StoreRefused(NOT_LET_IN)
    return unavailable("cannot be reached")


def unavailable(what: str) -> StoreUnavailable:
    """The error for a database that is away or busy, and will be back."""
    return StoreUnavailable(f"The gallery's database {what}: try again.", retry_after_seconds=RETRY_SECONDS)
