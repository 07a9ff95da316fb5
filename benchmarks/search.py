"""How fast and how well is a large gallery searched, next to bare FAISS with the same index?

People with five faces each are generated; half of the probes are mated, half unmated. For each gallery size
the server is started from the store and again from its snapshot, and identifies embeddings: one probe per
request, and many in a batch, as lines of JSON, as an array and in Arrow. Bare FAISS builds, reads and
searches the index of the snapshot. A start includes that of the networks, which is also measured without a
gallery.

    python -m benchmarks.search [--faces 10000 100000 1000000] [--data ~/.sameface]
"""

import argparse
import http.client
import json
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.rivals.bare import BLOCK, BareIndex
from benchmarks.shared.batches import ask_batch, write_batches
from benchmarks.shared.load import identify_request, run_load
from benchmarks.shared.machine import describe_machine
from benchmarks.shared.people import FACES_EACH, PEOPLE_AT_ONCE, People
from benchmarks.shared.recall import judge, share_right
from benchmarks.shared.server import Server, serve
from sameface.model.bundles.bundle import Bundle, load_bundle
from sameface.model.data_folder import DataFolder
from sameface.model.faces import Floats
from sameface.model.gallery.gallery import Gallery
from sameface.model.gallery.index.faiss.candidates import BLAS_THRESHOLD, faiss
from sameface.model.gallery.index.faiss.collection_indexes import open_indexes
from sameface.model.gallery.index.faiss.face_index import FaceIndex
from sameface.model.gallery.index.faiss.snapshot import load_snapshot
from sameface.model.store.records import Collection, NewFace, NewPerson
from sameface.model.store.store import Store

SINGLE, TURN, MANY = 400, 50, 4_096
TIMES = 8  # as many probes in a batch where a search takes a fraction of a millisecond
ROUNDS = 5
IN_A_ROW, SEVERAL = 3, "three arrays in a row, Arrow back"
LARGE = 500_000  # faces
WARM_UP = 100
ENROLMENTS = 100
BUILT, RESTART = "first start, s to the final index", "restart, s to ready"
BYTES = "bytes per face over an empty process"
ENROL = "enrol by embedding, p50 ms"


@dataclass
class Row:
    """The figures at one gallery size: of the server, and of bare FAISS where it has a counterpart."""

    faces: int
    server: dict[str, str] = field(default_factory=dict)
    bare: dict[str, str] = field(default_factory=dict)


def main() -> None:
    """Measure every gallery size, and print one table."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--faces", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    arguments.add_argument("--data", type=Path, default=Path("~/.sameface").expanduser())
    options = arguments.parse_args()
    faiss.cvar.distance_compute_blas_threshold = BLAS_THRESHOLD
    console = Console(width=170)
    console.print(describe_machine())
    rows = [measure(options.data, faces) for faces in (0, *options.faces)]
    console.print(show(rows[1:]))
    empty = rows[0].server
    console.print(f"Without a gallery: {empty[RESTART]} s to start, {empty[ENROL]} ms to enrol the first.")


def show(rows: list[Row]) -> Table:
    """A table with a row per figure, and two columns per gallery size."""
    columns = [name for row in rows for name in (f"{row.faces:,} faces", "bare FAISS")]
    table = Table("", *columns, title="gallery search, 128-d")
    for name in rows[-1].server:
        table.add_row(name, *(side.get(name, "") for row in rows for side in (row.server, row.bare)))
    return table


def measure(data: Path, faces: int) -> Row:
    """All figures of one gallery size, measured in a temporary data folder with the models of `data`."""
    row = Row(faces)
    with tempfile.TemporaryDirectory() as folder:
        own = borrow_networks(data, Path(folder))
        bundle = load_bundle(own.recognizer)
        people = People(faces // FACES_EACH, bundle.contract.dimension or 0)
        collection = enrol(own, bundle, people, row)
        start_twice(own, collection, start_empty(data), row)
        bare = build_bare(own, collection, row) if faces else None
        with serve(own.root, "--threads", "2") as server:
            if bare:
                ask(server, bare, people, row)
            time_enrolments(server, people, row)
    return row


def borrow_networks(data: Path, folder: Path) -> DataFolder:
    """The data folder `folder` with the networks of another one, prepared there."""
    own, other = DataFolder(folder), DataFolder(data)
    other.cache.mkdir(exist_ok=True)
    own.models.symlink_to(other.models.resolve())
    own.cache.symlink_to(other.cache.resolve())
    return own


def enrol(own: DataFolder, bundle: Bundle, people: People, row: Row) -> Collection:
    """Enrol everybody in the store, and record the faces written per second."""
    start = time.perf_counter()
    with closing(Gallery(own.gallery, bundle)) as gallery:
        collection, _ = gallery.create_collection("people")
        total = -(-len(people.centres) // PEOPLE_AT_ONCE)
        for first, faces in track(people.blocks(), f"enrolling {row.faces:,}", total=total, transient=True):
            gallery.enroll(
                collection,
                [
                    NewPerson(
                        f"p{first + place}",
                        [NewFace(f"{first + place}-{n}", face) for n, face in enumerate(own)],
                    )
                    for place, own in enumerate(faces)
                ],
            )
        row.server["faces written to the store per s"] = per_second(row.faces, time.perf_counter() - start)
        return gallery.get_collection("people")


def start_empty(data: Path) -> float:
    """Resident megabytes of a server without a gallery."""
    with tempfile.TemporaryDirectory() as folder:
        own = borrow_networks(data, Path(folder))
        with serve(own.root, "--threads", "2") as server:
            return server.resident_megabytes


def start_twice(own: DataFolder, collection: Collection, empty: float, row: Row) -> None:
    """Time the start from the store until the final index is built, and the restart from the snapshot."""
    start = time.perf_counter()
    with serve(own.root, "--threads", "2") as server:
        ready = time.perf_counter() - start
        wanted = "exact" if row.faces <= 50_000 else "codes"
        while get(server, "/v1/collections/people")["index"] != wanted:
            time.sleep(0.1)
        built = time.perf_counter() - start
        time.sleep(3)  # the snapshot is being written
    row.server["first start, s to ready"] = f"{ready:.1f}"
    row.server[BUILT] = f"{built:.1f}"
    start = time.perf_counter()
    with serve(own.root, "--threads", "2") as server:
        row.server[RESTART] = f"{time.perf_counter() - start:.1f}"
        grown = (server.resident_megabytes - empty) * 1024**2 / max(1, row.faces)
    codes = collection.dimension // 4 if row.faces > 50_000 else 0
    limit = codes + collection.dimension * 4 + 16
    row.server[BYTES] = f"{grown:.0f}"
    row.server["... of codes + embedding + 16"] = f"{grown / limit:.2f} x {limit}"


def build_bare(own: DataFolder, collection: Collection, row: Row) -> BareIndex:
    """Build and read the server's index by bare FAISS, and record seconds and bytes."""
    bare = BareIndex(open_index(own, collection))
    seconds, face_bytes = bare.read_again()
    row.bare[BUILT] = f"{bare.build_seconds:.3f}"
    row.bare[RESTART] = f"{seconds:.3f}"
    row.bare[BYTES] = f"{face_bytes:.0f}"
    return bare


def ask(server: Server, bare: BareIndex, people: People, row: Row) -> None:
    """Search over HTTP and by bare FAISS, by turns because the machine is noisy, and compare the results."""
    probes, who = people.probes(MANY)
    ask_one_by_one(server, bare, probes[:SINGLE], row)
    ask_in_batches(server, bare, probes if row.faces >= LARGE else np.tile(probes, (TIMES, 1)), row)
    compare(server, bare, probes, who, row)


def ask_in_batches(server: Server, bare: BareIndex, probes: Floats, row: Row) -> None:
    """Record the probes per second of a batch in each format, and of bare FAISS in blocks, by turns.

    So many batches one after the other that the audit has no room for their decisions wait for it.
    """
    batches = write_batches(probes)
    array = batches[1]
    alone: list[float] = []
    over: dict[str, list[float]] = {name: [] for name in (*(batch.name for batch in batches), SEVERAL)}
    for _ in range(ROUNDS):
        alone.append(len(probes) / clock(bare.search_many, probes))
        for batch in batches:
            over[batch.name].append(len(probes) / clock(ask_batch, server, batch))
            server.rest()
        seconds = sum(clock(ask_batch, server, array) for _ in range(IN_A_ROW))
        over[SEVERAL].append(IN_A_ROW * len(probes) / seconds)
        server.rest()
    for name, rates in over.items():
        shares = [rate / limit for rate, limit in zip(rates, alone, strict=True)]
        row.server[f"batch, {name}: probes/s"] = f"{np.median(rates):,.0f}"
        row.server[f"... of bare in blocks of {BLOCK}, {name}"] = (
            f"{np.median(shares):.2f} ({min(shares):.2f} to {max(shares):.2f})"
        )
        row.bare[f"batch, {name}: probes/s"] = f"{np.median(alone):,.0f}"


def ask_one_by_one(server: Server, bare: BareIndex, probes: Floats, row: Row) -> None:
    """Record the latency of single searches over HTTP and by bare FAISS, by turns."""
    requests = [identify_request(probe) for probe in probes]
    run_load(server, requests, 1, count=WARM_UP)
    alone, over = [], []
    for first in range(0, len(probes), TURN):
        some = range(first, first + TURN)
        alone += [1000 * clock(bare.search_one, probes[place : place + 1]) for place in some]
        over += [1000 * seconds for seconds in run_load(server, requests[first:], 1, count=TURN).latencies]
    name = "identify, p50 / p99 ms"
    row.server[name], row.bare[name] = percentiles(over), percentiles(alone)
    row.server["... over 1.3 x bare, ms (1 allowed)"] = f"{np.median(over) - 1.3 * np.median(alone):+.2f}"


def percentiles(milliseconds: list[float]) -> str:
    """The median and the 99th percentile."""
    return f"{np.median(milliseconds):.2f} / {np.percentile(milliseconds, 99):.2f}"


def open_index(own: DataFolder, collection: Collection) -> FaceIndex:
    """The server's index from its snapshot, or built from the store if there is none."""
    with closing(Store(own.gallery)) as store, closing(open_indexes(store)) as indexes:
        path, owner = indexes.path_of(collection), indexes.owner_of(collection)
        if path.exists():
            return load_snapshot(path, owner, "cpu")
        return indexes.follow(collection)


def compare(server: Server, bare: BareIndex, probes: Floats, who: list[str | None], row: Row) -> None:
    """Record the recall of the server and of bare FAISS against an exact search."""
    lines = write_batches(probes)[0]
    keys = {f"p{number}": int(key) for number, key in enumerate(np.unique(bare.columns.people))}
    shown = [keys[person] if person else None for person in who]
    exact = bare.find_people_exactly(probes)
    row.bare |= judge(bare.find_people(probes), exact, shown)
    for fusion in ("max", "mean"):
        start = time.perf_counter()
        answered = ask_batch(server, lines, f"limit=10&fusion={fusion}")
        rate = MANY / (time.perf_counter() - start)
        answers = [json.loads(line) for line in answered.splitlines()]
        found = [[keys[hit["person_id"]] for hit in answer["results"][0]["candidates"]] for answer in answers]
        if fusion == "max":
            row.server |= judge(found, exact, shown)
        else:
            row.server["by mean: right person first"] = f"{share_right(found, shown):.2%}"
        row.server[f"by {fusion}, ten people each: probes/s"] = f"{rate:,.0f}"


def time_enrolments(server: Server, people: People, row: Row) -> None:
    """Record the time of an enrolment, and of its look-alike search, which identify repeats."""
    connection = http.client.HTTPConnection(server.host, server.port)
    headers = {"Content-Type": "application/json"}
    enrolled, searched = [], []
    for number in range(ENROLMENTS):
        [newcomer] = people.invent(1)
        body = json.dumps({"person_id": f"new-{number}", "embeddings": [newcomer.tolist()]})
        start = time.perf_counter()
        connection.request("POST", "/v1/collections/people/people", body, headers)
        connection.getresponse().read()
        enrolled.append(time.perf_counter() - start)
        connection.request(
            "POST", "/v1/collections/people/identify", json.dumps({"embedding": newcomer.tolist()}), headers
        )
        searched.append(json.loads(connection.getresponse().read())["timings_ms"]["search"])
    row.server[ENROL] = f"{np.median(enrolled) * 1000:.2f}"
    row.server["... of it the look-alike search, ms"] = f"{np.median(searched):.2f}"


def get(server: Server, path: str) -> dict[str, str]:
    """GET `path`, and return the JSON of the response."""
    connection = http.client.HTTPConnection(server.host, server.port)
    connection.request("GET", path)
    answer: dict[str, str] = json.loads(connection.getresponse().read())
    return answer


def clock(work: Callable[..., object], *arguments: object) -> float:
    """The seconds that `work` takes."""
    start = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - start


def per_second(count: int, seconds: float) -> str:
    """`count` per second as text, empty if `count` is 0."""
    return f"{count / seconds:,.0f}" if count else ""


if __name__ == "__main__":
    main()
