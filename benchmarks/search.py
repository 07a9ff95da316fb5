"""How fast and how well is a large gallery searched, next to bare FAISS with the same index?

People of five faces each are generated, half of the probes are of one of them, half of nobody. For each size
the gallery is enrolled, the server started from the store and again from its snapshot, and asked by
embedding: one probe at a time, and as one stream. Bare FAISS searches the very index of the snapshot, in
this process.

    python -m benchmarks.search [--faces 10000 100000 1000000] [--data ~/.sameface]
"""

import argparse
import http.client
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import faiss
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.load import run_load
from benchmarks.server import Server, serve
from model.bundle import Bundle, load_bundle
from model.faces import Floats
from model.folders import DataFolder
from model.gallery import Gallery
from model.index import BLAS_THRESHOLD, FaceIndex
from model.records import Collection, NewFace, NewPerson
from model.snapshot import load_snapshot

FACES_EACH = 5
SPREAD = 0.06  # per dimension: two faces of a person are 0.68 alike, as those of real ones are
PEOPLE_AT_ONCE = 1_000
SINGLE, TURN, MANY, BLOCK = 400, 50, 4_096, 256
WARM_UP = 100
ENROLMENTS = 100


@dataclass
class Row:
    """What is measured at one size."""

    faces: int
    figures: dict[str, str] = field(default_factory=dict)


def main() -> None:
    """Measure every size and print one table."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--faces", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    arguments.add_argument("--data", type=Path, default=Path("~/.sameface").expanduser())
    options = arguments.parse_args()
    faiss.cvar.distance_compute_blas_threshold = BLAS_THRESHOLD
    rows = [measure(options.data, faces) for faces in (0, *options.faces)]
    table = Table("", *(f"{row.faces:,} faces" for row in rows[1:]), title="gallery search, 128-d")
    for name in rows[1].figures:
        table.add_row(name, *(row.figures.get(name, "") for row in rows[1:]))
    console = Console(width=120)
    console.print(table)
    console.print(f"On an empty gallery: {rows[0].figures['enrol by embedding, p50 ms']} ms to enrol.")


def measure(data: Path, faces: int) -> Row:
    """All figures of one size, in a data folder of its own."""
    row = Row(faces)
    with tempfile.TemporaryDirectory() as folder:
        own = DataFolder(Path(folder))
        own.models.symlink_to((data / "models").resolve())
        own.cache.symlink_to((data / "cache").resolve())
        bundle = load_bundle(own.recognizer)
        people = People(faces // FACES_EACH, bundle.contract.dimension or 0)
        collection = enrol(own, bundle, people, row)
        empty = start_empty(data)
        start_twice(own, collection, empty, row)
        with serve(own.root, "--threads", "2") as server:
            if faces:
                ask(server, own, collection, people, row)
            time_enrolments(server, people, row)
    return row


class People:
    """Generated people, the same each time."""

    def __init__(self, count: int, dimension: int) -> None:
        self.random = np.random.default_rng(7)
        self.dimension = dimension
        self.centres = self.unit(self.random.standard_normal((count, dimension), np.float32))

    def unit(self, values: Floats) -> Floats:
        """At length 1."""
        unit: Floats = values / np.linalg.norm(values, axis=-1, keepdims=True)
        return unit

    def photograph(self, people: Floats) -> Floats:
        """A new face of each."""
        return self.unit(people + SPREAD * self.random.standard_normal(people.shape, np.float32))

    def blocks(self) -> Iterator[tuple[int, Floats]]:
        """The first of some people, and their faces (people, faces, dimension)."""
        for first in range(0, len(self.centres), PEOPLE_AT_ONCE):
            some = self.centres[first : first + PEOPLE_AT_ONCE, None]
            yield first, self.photograph(np.repeat(some, FACES_EACH, axis=1))

    def probes(self, count: int) -> tuple[Floats, list[str | None]]:
        """Probes and whom they show: every second one nobody."""
        who = self.random.integers(0, len(self.centres), count)
        strangers = self.unit(self.random.standard_normal((count, self.dimension), np.float32))
        mated = np.arange(count) % 2 == 0
        embeddings = np.where(mated[:, None], self.photograph(self.centres[who]), strangers)
        return embeddings, [f"p{person}" if mate else None for person, mate in zip(who, mated, strict=True)]


def enrol(own: DataFolder, bundle: Bundle, people: People, row: Row) -> Collection:
    """Everybody into the store."""
    start = time.perf_counter()
    with closing(Gallery(own.gallery, bundle)) as gallery:
        collection, _ = gallery.create_collection("people")
        total = -(-len(people.centres) // PEOPLE_AT_ONCE)
        for first, faces in track(people.blocks(), f"enrolling {row.faces:,}", total=total, transient=True):
            gallery.enrol(
                collection,
                [
                    NewPerson(
                        f"p{first + place}",
                        [NewFace(f"{first + place}-{n}", face) for n, face in enumerate(own)],
                    )
                    for place, own in enumerate(faces)
                ],
            )
        row.figures["faces written to the store per s"] = per_second(row.faces, time.perf_counter() - start)
        return gallery.get_collection("people")


def start_empty(data: Path) -> float:
    """Megabytes of a server without a gallery."""
    with tempfile.TemporaryDirectory() as folder:
        own = DataFolder(Path(folder))
        own.models.symlink_to((data / "models").resolve())
        own.cache.symlink_to((data / "cache").resolve())
        with serve(own.root, "--threads", "2") as server:
            return server.resident_megabytes


def start_twice(own: DataFolder, collection: Collection, empty: float, row: Row) -> None:
    """From the store until it is searched as it should be, and from the snapshot."""
    start = time.perf_counter()
    with serve(own.root, "--threads", "2") as server:
        ready = time.perf_counter() - start
        wanted = "exact" if row.faces <= 50_000 else "ivf"
        while get(server, "/v1/collections/people")["index"] != wanted:
            time.sleep(0.1)
        built = time.perf_counter() - start
        time.sleep(3)  # the snapshot is being written
    row.figures["first start, s to ready"] = f"{ready:.1f}"
    row.figures["first start, s to the final index"] = f"{built:.1f}"
    start = time.perf_counter()
    with serve(own.root, "--threads", "2") as server:
        row.figures["restart, s to ready"] = f"{time.perf_counter() - start:.1f}"
        grown = (server.resident_megabytes - empty) * 1024**2 / max(1, row.faces)
    codes = collection.dimension * 2 if row.faces > 50_000 else 0
    limit = codes + collection.dimension * 4 + 16
    row.figures["bytes per face over an empty server"] = f"{grown:.0f}"
    row.figures["... of codes + embedding + 16"] = f"{grown / limit:.2f} x {limit}"


def ask(server: Server, own: DataFolder, collection: Collection, people: People, row: Row) -> None:
    """Searches over HTTP and bare, by turns, and what they find."""
    probes, who = people.probes(MANY)
    index = open_bare(own, collection)
    bare_one, bare_many = bare_search(index)
    requests = [identify_request(probe) for probe in probes[:SINGLE]]
    run_load(server, requests, 1, count=WARM_UP)
    bare, over = [], []
    for first in range(0, SINGLE, TURN):  # by turns, because the machine is noisy
        some = range(first, first + TURN)
        bare += [1000 * clock(bare_one, probes[place : place + 1]) for place in some]
        over += [1000 * seconds for seconds in run_load(server, requests[first:], 1, count=TURN).latencies]
    row.figures["bare FAISS, one probe, p50 / p99 ms"] = percentiles(bare)
    row.figures["HTTP identify, p50 / p99 ms"] = percentiles(over)
    row.figures["... over 1.5 x bare, ms (2 allowed)"] = f"{np.median(over) - 1.5 * np.median(bare):+.2f}"

    lines = b"".join(
        json.dumps({"id": str(n), "embedding": probe.tolist()}).encode() + b"\n"
        for n, probe in enumerate(probes)
    )
    seconds: dict[str, list[float]] = {"bare": [], "http": []}
    for _ in range(3):
        seconds["bare"].append(clock(bare_many, probes))
        seconds["http"].append(clock(stream, server, lines))
    bare_rate, http_rate = MANY / min(seconds["bare"]), MANY / min(seconds["http"])
    row.figures[f"bare FAISS, blocks of {BLOCK}, probes/s"] = f"{bare_rate:,.0f}"
    row.figures["HTTP batch, probes/s"] = f"{http_rate:,.0f}"
    row.figures["... of bare"] = f"{http_rate / bare_rate:.2f}"
    compare(server, index, lines, probes, who, row)


def identify_request(probe: Floats) -> bytes:
    """POST .../identify with an embedding."""
    body = json.dumps({"embedding": probe.tolist()}).encode()
    head = b"POST /v1/collections/people/identify HTTP/1.1\r\nHost: sameface\r\n"
    return head + b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def percentiles(milliseconds: list[float]) -> str:
    """The middle and the slow end."""
    return f"{np.median(milliseconds):.2f} / {np.percentile(milliseconds, 99):.2f}"


def open_bare(own: DataFolder, collection: Collection) -> FaceIndex:
    """The server's own index, from its snapshot, or what it would be."""
    with closing(Gallery(own.gallery, load_bundle(own.recognizer))) as gallery:
        path, owner = gallery.indexes.path_of(collection), gallery.indexes.owner_of(collection)
        if path.exists():
            return load_snapshot(path, owner, "cpu")
        return gallery.indexes.follow(collection)


def bare_search(index: FaceIndex) -> tuple[Callable[[Floats], object], Callable[[Floats], object]]:
    """Ten neighbours of one probe, and of many in blocks."""
    searched = index.candidates
    if searched is None:
        searched = faiss.IndexFlatIP(index.columns.dimension)
        searched.add(index.columns.embeddings)

    def many(probes: Floats) -> None:
        for first in range(0, len(probes), BLOCK):
            searched.search(probes[first : first + BLOCK], 10)

    return lambda probe: searched.search(probe, 10), many


def compare(
    server: Server, index: FaceIndex, lines: bytes, probes: Floats, who: list[str | None], row: Row
) -> None:
    """What was found with what comparing everything finds."""
    _, rows = faiss.knn(probes, index.columns.embeddings, 100, faiss.METRIC_INNER_PRODUCT)
    exact = [list(dict.fromkeys(index.columns.people[near].tolist()))[:10] for near in rows]
    keys = {f"p{number}": int(key) for number, key in enumerate(np.unique(index.columns.people))}
    mated = [place for place, person in enumerate(who) if person]
    unmated = [place for place, person in enumerate(who) if not person]
    right_exactly = sum(exact[place][0] == keys[who[place] or ""] for place in mated)
    for fusion in ("max", "mean"):
        start = time.perf_counter()
        answers = stream(server, lines, f"limit=10&fusion={fusion}")
        rate = MANY / (time.perf_counter() - start)
        found = [[keys[hit["person_id"]] for hit in answer["results"][0]["candidates"]] for answer in answers]
        right = sum(found[place][0] == keys[who[place] or ""] for place in mated)
        row.figures[f"{fusion}: right person first"] = f"{right / len(mated):.2%} at {rate:,.0f} probes/s"
        if fusion == "max":
            row.figures["... of what exact search finds"] = f"{right / right_exactly:.2%}"
            for name, places in (("mated", mated), ("unmated", unmated)):
                pairs = [(found[place], exact[place]) for place in places]
                first = np.mean([one[0] == other[0] for one, other in pairs])
                shared = np.mean([len(set(one) & set(other)) / 10 for one, other in pairs])
                row.figures[f"recall@1 / @10 of people, {name}"] = f"{first:.1%} / {shared:.1%}"


def time_enrolments(server: Server, people: People, row: Row) -> None:
    """New people one by one; the look-alike search is the one that identify makes."""
    connection = http.client.HTTPConnection(server.host, server.port)
    headers = {"Content-Type": "application/json"}
    enrolled, searched = [], []
    for number in range(ENROLMENTS):
        [newcomer] = people.unit(people.random.standard_normal((1, people.dimension), np.float32))
        body = json.dumps({"person_id": f"new-{number}", "embeddings": [newcomer.tolist()]})
        start = time.perf_counter()
        connection.request("POST", "/v1/collections/people/people", body, headers)
        connection.getresponse().read()
        enrolled.append(time.perf_counter() - start)
        connection.request(
            "POST", "/v1/collections/people/identify", json.dumps({"embedding": newcomer.tolist()}), headers
        )
        searched.append(json.loads(connection.getresponse().read())["timings_ms"]["search"])
    row.figures["enrol by embedding, p50 ms"] = f"{np.median(enrolled) * 1000:.2f}"
    row.figures["... of it the look-alike search, ms"] = f"{np.median(searched):.2f}"


def stream(
    server: Server, lines: bytes, query: str = ""
) -> list[dict[str, list[dict[str, list[dict[str, str]]]]]]:
    """One batch, and its answers."""
    connection = http.client.HTTPConnection(server.host, server.port)
    headers = {"Content-Type": "application/x-ndjson"}
    connection.request("POST", f"/v1/collections/people/identify/batch?{query}", lines, headers)
    return [json.loads(line) for line in connection.getresponse().read().splitlines()]


def get(server: Server, path: str) -> dict[str, str]:
    """A JSON answer."""
    connection = http.client.HTTPConnection(server.host, server.port)
    connection.request("GET", path)
    answer: dict[str, str] = json.loads(connection.getresponse().read())
    return answer


def clock(work: Callable[..., object], *arguments: object) -> float:
    """Seconds that it takes."""
    start = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - start


def per_second(count: int, seconds: float) -> str:
    """A rate."""
    return f"{count / seconds:,.0f}" if count else ""


if __name__ == "__main__":
    main()
