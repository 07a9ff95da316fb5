"""Has anything become slower? This checkout against another one, by turns in one run.

Both serve at the same time, each from the `.venv` of its checkout and on a data folder of its own; only one
is under load at a time.

    python -m benchmarks.versions CHECKOUT LFW_FOLDER [--data ~/.sameface] [--faces 100000] [--rounds 5]
"""

import argparse
import json
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from benchmarks.shared.lfw import read_lfw
from benchmarks.shared.load import Connection, identify_request, post, run_load, verify_request
from benchmarks.shared.people import FACES_EACH, People
from benchmarks.shared.server import Server, serve
from sameface.model.faces import Floats

HERE = Path(__file__).parents[1]
DIMENSION = 128  # of SFace
PROBES = 1_000
LINES = 2_000  # of one batch
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
    people = People(options.faces // FACES_EACH, DIMENSION)
    probes, _ = people.probes(PROBES)
    searches = [identify_request(probe) for probe in probes]
    lines = [{"id": str(n), "embedding": to_list(probes[n % PROBES])} for n in range(LINES)]
    batch = post_lines("identify/batch", lines)
    enrolments = list(people.blocks())
    newcomers = [enroll_request(embedding) for embedding in people.invent(ENROLMENTS)]
    with ExitStack() as opened:
        versions = []
        for name, checkout in (("other", options.checkout), ("this", HERE)):
            folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
            (folder / "models").symlink_to((options.data / "models").resolve())
            server = opened.enter_context(serve(folder, "--threads", "2", checkout=checkout.resolve()))
            versions.append(Version(name, server))
            fill(server, enrolments)
        for _ in range(options.rounds):
            for version in versions:
                take_turn(version, photos, searches, newcomers, batch, options.seconds)
                version.add("resident MB", version.server.resident_megabytes)
            versions.reverse()
    show(versions, options.rounds)


def fill(server: Server, enrolments: list[tuple[int, Floats]]) -> None:
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


def take_turn(
    version: Version,
    photos: list[bytes],
    searches: list[bytes],
    newcomers: list[bytes],
    batch: bytes,
    seconds: float,
) -> None:
    """Measure every figure of one version once."""
    measures: dict[str, Callable[[], float]] = {
        "verify, 1 client, /s": lambda: run_load(version.server, photos, 1, seconds=seconds).per_second,
        "verify, 4 clients, /s": lambda: run_load(version.server, photos, 4, seconds=seconds).per_second,
        "identify, 1 client, p50 ms": lambda: run_load(
            version.server, searches, 1, seconds=seconds / 2
        ).percentile(50),
        "identify, 8 clients, /s": lambda: (
            run_load(version.server, searches, 8, seconds=seconds / 2).per_second
        ),
        "enrol by embedding, 1 client, p50 ms": lambda: run_load(
            version.server, newcomers, 1, count=len(newcomers)
        ).percentile(50),
        "batch, probes/s": lambda: LINES / ask_stream(version.server, batch),
    }
    for name, measure in measures.items():
        version.add(name, measure())
    version.add("verify, CPU ms each", measure_cpu(version.server, photos))


def measure_cpu(server: Server, photos: list[bytes]) -> float:
    """The server's CPU time for each of many verifications, in milliseconds."""
    before = server.cpu_seconds
    answered = run_load(server, photos, 1, count=CPU_REQUESTS).answers
    return 1000 * (server.cpu_seconds - before) / len(answered)


def show(versions: list[Version], rounds: int) -> None:
    """Print the medians, and the ratio of this version to the other with its spread over the rounds."""
    this, other = sorted(versions, key=lambda version: version.name, reverse=True)
    table = Table("", "the other", "this", "ratio", "least to most")
    for name, values in this.figures.items():
        ratios = [mine / theirs for mine, theirs in zip(values, other.figures[name], strict=True)]
        table.add_row(
            name,
            f"{median(other.figures[name]):.2f}",
            f"{median(values):.2f}",
            f"{median(ratios):.3f}",
            f"{min(ratios):.2f} to {max(ratios):.2f}",
        )
    table.caption = f"medians of {rounds} rounds by turns"
    Console(width=110).print(table)


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
