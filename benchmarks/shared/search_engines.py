"""What benchmarks compare as search engines: sameface on FAISS and on Milvus, Milvus alone, and pgvector."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Protocol

import psycopg

from benchmarks.rivals.milvus_client import MilvusAlone
from benchmarks.rivals.milvus_server import MilvusServer
from benchmarks.rivals.pgvector import Pgvector
from benchmarks.shared.postgres import start_postgres
from benchmarks.shared.server import read_resident_bytes
from sameface.model.bundles.bundle import Bundle
from sameface.model.data_folder import MilvusAddress, SharedGallery
from sameface.model.faces import Floats
from sameface.model.gallery.gallery import Gallery
from sameface.model.store.records import NewFace, NewPerson

FED_SECONDS = 0.5  # between two looks whether Milvus was fed


class Engine(Protocol):
    """What is measured."""

    name: str

    def add(self, people: Sequence[str], faces: Floats) -> None:
        """Write people with their faces (people, faces, dimension)."""

    def finish(self) -> None:
        """Return once everybody is indexed."""

    def find(self, probes: Floats, limit: int) -> list[list[str]]:
        """The people nearest to each probe."""

    def forget(self, person: str) -> None:
        """Delete a person."""

    def measure_memory(self) -> int:
        """The bytes of memory that searching takes."""

    def close(self) -> None:
        """End it."""


class Sameface:
    """A gallery in SQLite or, at `database`, PostgreSQL, searched by FAISS or, at `server`, by Milvus."""

    def __init__(
        self, folder: Path, bundle: Bundle, server: MilvusServer | None = None, database: str | None = None
    ) -> None:
        where = "PostgreSQL" if database else "SQLite"
        self.name = f"sameface on {'Milvus' if server else 'FAISS'}, {where}"
        self._server, self._database = server, database
        self._before = self._resident()
        milvus = MilvusAddress(server.uri) if server else None
        folder.mkdir(parents=True)
        place = SharedGallery(database, folder) if database else folder / "gallery.db"
        self._gallery = Gallery(place, bundle, milvus=milvus)
        self._people, _ = self._gallery.create_collection("people")
        self._gallery.load()

    def add(self, people: Sequence[str], faces: Floats) -> None:
        """Enrol people with their faces (people, faces, dimension)."""
        newcomers = [
            NewPerson(person, [NewFace(f"{person}-{number}", face) for number, face in enumerate(own)])
            for person, own in zip(people, faces, strict=True)
        ]
        self._gallery.enroll(self._people, newcomers)

    def finish(self) -> None:
        """Return once Milvus has everybody, or FAISS's index was rebuilt for this size.

        PostgreSQL vacuums by itself, some minutes later: until then who reads a new page must write it, too.
        """
        if self._database:
            with psycopg.connect(self._database, autocommit=True) as connection:
                connection.execute("VACUUM ANALYZE")
        people = self._gallery.get_collection("people")
        if not self._server:
            self._gallery.indexes.warm_up([people])
            while self._gallery.index_kind(people) == "exact" and people.faces > 50_000:
                time.sleep(FED_SECONDS)
        while self._server and self._gallery.store.feeds.get(people).sequence < people.revision:
            time.sleep(FED_SECONDS)

    def find(self, probes: Floats, limit: int) -> list[list[str]]:
        """The people nearest to each probe."""
        _, found = self._gallery.search_newest("people", probes, limit)
        return [[each.person_id for each in candidates] for candidates in found.by_probe()]

    def forget(self, person: str) -> None:
        """Delete a person."""
        self._gallery.forget_person(self._people, person)

    def measure_memory(self) -> int:
        """The bytes that the server's memory, or with FAISS this process's, has grown by."""
        return self._resident() - self._before

    def close(self) -> None:
        """Close the gallery."""
        self._gallery.close()

    def _resident(self) -> int:
        return self._server.resident_bytes if self._server else read_resident_bytes(os.getpid())


@contextmanager
def on_faiss(folder: Path, bundle: Bundle) -> Iterator[Engine]:
    """A gallery as one machine has it."""
    with closing(Sameface(folder / "gallery", bundle)) as engine:
        yield engine


@contextmanager
def following_postgres(folder: Path, bundle: Bundle) -> Iterator[Engine]:
    """A gallery as one of several machines has it."""
    with start_postgres() as url, closing(Sameface(folder / "gallery", bundle, database=url)) as engine:
        yield engine


@contextmanager
def on_milvus(folder: Path, bundle: Bundle) -> Iterator[Engine]:
    """A gallery that outgrows the memory of a machine."""
    with (
        milvus_in(folder / "milvus") as server,
        closing(Sameface(folder / "gallery", bundle, server)) as engine,
    ):
        yield engine


@contextmanager
def milvus_alone(folder: Path, bundle: Bundle) -> Iterator[Engine]:
    """Milvus's own client."""
    with (
        milvus_in(folder / "milvus") as server,
        closing(MilvusAlone(server, bundle.contract.dimension or 0)) as engine,
    ):
        yield engine


@contextmanager
def pgvector(_: Path, bundle: Bundle) -> Iterator[Engine]:
    """A table with an index of PostgreSQL's."""
    with closing(Pgvector(bundle.contract.dimension or 0)) as engine:
        yield engine


OPENERS: dict[str, Callable[[Path, Bundle], AbstractContextManager[Engine]]] = {
    "faiss": on_faiss,
    "postgres": following_postgres,
    "milvus": on_milvus,
    "milvus-alone": milvus_alone,
    "pgvector": pgvector,
}


@contextmanager
def milvus_in(folder: Path) -> Iterator[MilvusServer]:
    """A Milvus server, killed at the end."""
    server = MilvusServer(folder)
    try:
        yield server
    finally:
        server.kill()
