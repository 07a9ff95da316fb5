"""Which kind of database a gallery is in."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import Connection, inspect

from sameface.model.data_folder import GalleryPlace
from sameface.model.errors import StoreRefused
from sameface.model.store.databases.database import Database
from sameface.model.store.databases.migrations import refuse_moving
from sameface.model.store.databases.sqlite_database import SqliteDatabase


def open_database(place: GalleryPlace) -> Database:
    """The database of a gallery; nothing in it is read yet."""
    if isinstance(place, Path):
        return SqliteDatabase(place)
    try:
        from sameface.model.store.databases.postgres.postgres_database import PostgresDatabase
    except ModuleNotFoundError as error:
        raise StoreRefused(
            "A gallery in PostgreSQL needs the extra `postgres` of sameface: install it."
        ) from error
    return PostgresDatabase(place)


@contextmanager
def peeking(place: GalleryPlace, table: str) -> Iterator[Connection | None]:
    """A snapshot of a database that may not exist or be older; None without one, or without the `table`.

    It takes no lock and migrates nothing, because comparing two photos must not wait for a gallery's writers.
    """
    try:
        if isinstance(place, Path) and not place.exists():
            yield None
            return
        with closing(open_database(place)) as database, database.reading() as connection:
            known = inspect(connection).has_table(table)
            if known:
                refuse_moving(connection)
            yield connection if known else None
    except OSError as error:
        raise StoreRefused(f"{place} cannot be opened: {error.strerror}.") from error
