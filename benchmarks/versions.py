"""Is this checkout faster or slower than another one? Both by turns in one run.

Both serve at the same time, each from the `.venv` of its checkout if it has one, and on a data folder of its
own; only one is under load at a time. `benchmarks.bench` judges what is measured here.

    python -m benchmarks.versions CHECKOUT LFW_FOLDER [--data ~/.sameface] [--faces 100000] [--rounds 5]
"""

import argparse
import io
import json
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.shared.lfw import read_lfw
from benchmarks.shared.load import Connection, identify_request, post, run_load, verify_request
from benchmarks.shared.machine import describe_machine
from benchmarks.shared.people import FACES_EACH, People
from benchmarks.shared.server import Server, serve
from sameface.model.faces import Floats

HERE = Path(__file__).parents[1]
DIMENSION = 128  # of SFace
PROBES = 1_000
LINES = 2_000  # of one batch
ROWS = 20_000  # of one array, which takes less time than lines
ENROLMENTS = 100
CPU_REQUESTS = 150


@dataclass
class Version:
    """A server of one checkout, and its figures by name, one for every round."""

    name: str
    server: Server
    figures: dict[str, list[float]] = field(default_factory=dict)

    def add(self, figure: str, value: float) -> None:
        """Record what was measured in one round."""
        self.figures.setdefault(figure, []).append(value)


@dataclass(frozen=True, slots=True)
class Work:
    """The requests that both versions are asked, made beforehand, and the seconds of one load."""

    photos: Sequence[bytes]
    searches: Sequence[bytes]
    newcomers: Sequence[bytes]
    lines: bytes
    rows: bytes
    enrolments: Sequence[tuple[int, Floats]]
    seconds: float


def main() -> None:
    """Start both servers, fill them alike, take turns, and print one table."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("checkout", type=Path)
    arguments.add_argument("lfw", type=Path)
    arguments.add_argument("--data", type=Path, default=Path("~/.sameface").expanduser())
    arguments.add_argument("--faces", type=int, default=100_000)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--seconds", type=float, default=4.0)
    options = arguments.parse_args()
    photos = [verify_request(pair.probe, pair.reference) for pair in read_lfw(options.lfw)[::15]]
    work = prepare_work(photos, options.faces, options.seconds)
    machine = describe_machine()
    with open_versions(options.checkout, options.data, work) as (other, this):
        take_turns(other, this, work, options.rounds)
    Console(width=110).print(machine, show(other, this))


def prepare_work(photos: Sequence[bytes], faces: int, seconds: float) -> Work:
    """The requests for a gallery of so many `faces`, and the verifications `photos`."""
    people = People(faces // FACES_EACH, DIMENSION)
    probes, _ = people.probes(PROBES)
    lines = [{"id": str(n), "embedding": to_list(probes[n % PROBES])} for n in range(LINES)]
    return Work(
        photos,
        [identify_request(probe) for probe in probes],
        [enroll_request(embedding) for embedding in people.invent(ENROLMENTS)],
        post_lines("identify/batch", lines),
        post_rows(np.resize(probes, (ROWS, DIMENSION))),
        list(people.blocks()),
        seconds,
    )


@contextmanager
def open_versions(checkout: Path, data: Path, work: Work) -> Iterator[tuple[Version, Version]]:
    """Serve `checkout` and this one, with the same people; yields the other version and this one."""
    with ExitStack() as opened:
        versions = []
        for name, place in (("other", checkout), ("this", HERE)):
            folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
            (folder / "models").symlink_to((data / "models").resolve())
            server = opened.enter_context(serve(folder, "--threads", "2", checkout=place.resolve()))
            versions.append(Version(name, server))
            fill(server, work.enrolments)
        yield versions[0], versions[1]


def take_turns(other: Version, this: Version, work: Work, rounds: int) -> None:
    """Measure both versions in every round, each first in every second one."""
    pair = [other, this]
    for _ in range(rounds):
        for version in pair:
            take_turn(version, work)
        pair.reverse()


def fill(server: Server, enrolments: Sequence[tuple[int, Floats]]) -> None:
    """Enrol everybody over HTTP, by embeddings."""
    with Connection(server) as connection:
        connection.ask(b"PUT /v1/collections/people HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
        for first, faces in enrolments:
            lines = [
                {"id": f"{first + place}-{n}", "person_id": f"p{first + place}", "embedding": to_list(face)}
                for place, own in enumerate(faces)
                for n, face in enumerate(own)
            ]
            ask_stream(server, post_lines("people/batch", lines))


def take_turn(version: Version, work: Work) -> None:
    """Measure every figure of one version once."""
    server, photos, searches, newcomers = version.server, work.photos, work.searches, work.newcomers
    whole, half = work.seconds, work.seconds / 2
    measures: dict[str, Callable[[], float]] = {
        "verify, 1 client, p50 ms": lambda: run_load(server, photos, 1, seconds=whole).percentile(50),
        "verify, 4 clients, /s": lambda: run_load(server, photos, 4, seconds=whole).per_second,
        "verify, CPU ms each": lambda: measure_cpu(server, photos),
        "identify, 1 client, p50 ms": lambda: run_load(server, searches, 1, seconds=half).percentile(50),
        "identify, 8 clients, /s": lambda: run_load(server, searches, 8, seconds=half).per_second,
        "enrol by embedding, 1 client, p50 ms": lambda: run_load(
            server, newcomers, 1, count=len(newcomers)
        ).percentile(50),
        "batch of lines, probes/s": lambda: LINES / ask_stream(server, work.lines),
        "batch as an array, probes/s": lambda: ROWS / ask_stream(server, work.rows),
        "resident MB": lambda: server.resident_megabytes,
    }
    for name, measure in measures.items():
        version.add(name, measure())


def measure_cpu(server: Server, photos: Sequence[bytes]) -> float:
    """The server's CPU time for each of many verifications, in milliseconds."""
    before = server.cpu_seconds
    answered = run_load(server, photos, 4, count=CPU_REQUESTS).answers
    return 1000 * (server.cpu_seconds - before) / len(answered)


def compare(name: str, other: Version, this: Version) -> list[float]:
    """How much faster this version was than the other in each round; below 1 it was slower, or larger."""
    ratios = [mine / theirs for mine, theirs in zip(this.figures[name], other.figures[name], strict=True)]
    return ratios if name.endswith("/s") else [1 / ratio for ratio in ratios]


def show(other: Version, this: Version) -> Table:
    """A table of the medians, and of how much faster this version is, with its spread over the rounds."""
    table = Table("", "the other", "this", "times as fast", "least to most")
    rounds = 0
    for name, values in this.figures.items():
        rounds, ratios = len(values), compare(name, other, this)
        table.add_row(
            name,
            f"{median(other.figures[name]):.2f}",
            f"{median(values):.2f}",
            f"{median(ratios):.3f}",
            f"{min(ratios):.2f} to {max(ratios):.2f}",
        )
    table.caption = f"medians of {rounds} rounds by turns"
    return table


def to_list(embedding: Floats) -> list[float]:
    """An embedding with the digits that matter."""
    return [round(float(number), 6) for number in embedding]


def enroll_request(embedding: Floats) -> bytes:
    """POST of a new person to the collection `people`, by an embedding."""
    body = json.dumps({"embeddings": [to_list(embedding)]}).encode()
    return post("/v1/collections/people/people", "application/json", body)


def post_lines(route: str, lines: Sequence[Mapping[str, object]]) -> bytes:
    """POST of NDJSON lines to a batch route of the collection `people`."""
    body = "".join(json.dumps(line) + "\n" for line in lines).encode()
    return post(f"/v1/collections/people/{route}", "application/x-ndjson", body)


def post_rows(probes: Floats) -> bytes:
    """POST of an array of probes to identify/batch of the collection `people`."""
    body = io.BytesIO()
    np.save(body, probes)
    return post("/v1/collections/people/identify/batch", "application/x-npy", body.getvalue())


def ask_stream(server: Server, request: bytes) -> float:
    """Send a batch and read its answer to the end; returns the seconds it took."""
    start = time.perf_counter()
    with socket.create_connection((server.host, server.port)) as connection:
        sender = threading.Thread(target=connection.sendall, args=(request,))
        sender.start()
        received = bytearray()
        while not received.endswith(b"0\r\n\r\n"):
            received += connection.recv(1 << 20)
        sender.join()
    assert b" 200 " in received[:20], bytes(received[:500])
    assert b'"error"' not in received
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
