"""What does our client cost over raw httpx, and does its memory stay flat in a long batch?

Two photos are verified by httpx itself and by the client, by turns; what counts is this process's CPU time.
Then `identify_many` searches for generated probes, of which every second is somebody enrolled.

    python -m benchmarks.client [--data ~/.sameface] [--verifications 400] [--probes 100000]

needs the client (`pip install ./clients/python`) and the portraits of `sameface demo`.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import getpid
from pathlib import Path
from statistics import median
from typing import Any

import httpx
from rich.console import Console
from rich.table import Table

import sameface_client
from benchmarks.shared.people import People
from benchmarks.shared.server import Server, read_resident_bytes, serve
from sameface.model.data_folder import DataFolder

PEOPLE = 1_000
STEPS = 10


def main() -> None:
    """Print both tables."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--data", type=Path, default=Path("~/.sameface").expanduser())
    arguments.add_argument("--verifications", type=int, default=400)
    arguments.add_argument("--probes", type=int, default=100_000)
    options = arguments.parse_args()
    folder = DataFolder(options.data)
    with borrow_models(folder) as data, serve(data) as server:
        url = f"http://{server.host}:{server.port}"
        photos = [(folder.demo / name).read_bytes() for name in ("obama.jpg", "obama2.jpg")]
        Console().print(compare_verifications(url, photos, options.verifications))
        Console().print(watch_memory(url, server, photos[0], options.probes))


@contextmanager
def borrow_models(folder: DataFolder) -> Iterator[Path]:
    """Yield a new data folder with the same models, so that nobody's gallery is touched."""
    with tempfile.TemporaryDirectory() as name:
        for part in (folder.models, folder.cache):
            (Path(name) / part.name).symlink_to(part)
        yield Path(name)


def compare_verifications(url: str, photos: list[bytes], count: int) -> Table:
    """The time of a verification by httpx and by the client, this process's and on the clock."""
    probe, reference = photos
    with httpx.Client(base_url=url, timeout=60) as raw, sameface_client.connect(url) as faces:

        def ask_httpx() -> Any:
            return raw.post("/v1/verify", files={"probe": probe, "reference": reference}).json()

        ways: dict[str, Callable[[], Any]] = {
            "httpx": ask_httpx,
            "sameface_client": lambda: faces.verify(probe, reference),
        }
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        for _ in range(count):
            for name, ask in ways.items():
                times[name].append(measure(ask))
    table = Table("verify by", "CPU ms here (median)", "over httpx", "ms on the clock (median)")
    least = median(cpu for cpu, _ in times["httpx"])
    for name, taken in times.items():
        cpu, clock = (median(column) for column in zip(*taken, strict=True))
        table.add_row(name, f"{cpu:.3f}", f"{cpu - least:+.3f}", f"{clock:.1f}")
    return table


def measure(ask: Callable[[], Any]) -> tuple[float, float]:
    """The milliseconds of CPU time and on the clock that a call takes."""
    cpu, clock = time.process_time(), time.perf_counter()
    ask()
    return (time.process_time() - cpu) * 1000, (time.perf_counter() - clock) * 1000


def watch_memory(url: str, server: Server, photo: bytes, count: int) -> Table:
    """The resident memory of both processes while `identify_many` answers `count` probes."""
    table = Table("probes", "right", "client MB", "server MB", "probes/s")
    with sameface_client.connect(url) as faces:
        [face] = faces.embed(photo).faces
        people = People(PEOPLE, len(face.embedding))
        staff = faces.collection("staff")
        entries = (
            sameface_client.EnrollEntry(f"p{first + place}", embedding, f"p{first + place}")
            for first, block in people.blocks()
            for place, some in enumerate(block)
            for embedding in some
        )
        assert all(isinstance(each, sameface_client.BatchEnrolled) for each in staff.enroll_many(entries))
        right, start = 0, time.perf_counter()
        for number, answer in enumerate(staff.identify_many(generate(people, count), limit=1), 1):
            assert isinstance(answer, sameface_client.BatchIdentified)
            match = answer.results[0].match
            right += (match.person_id if match else "nobody") == answer.id
            if number % (count // STEPS) == 0:
                mine = read_resident_bytes(getpid()) / 1024**2
                rate = number / (time.perf_counter() - start)
                row = f"{number:,}", f"{right / number:.2%}", f"{mine:.1f}"
                table.add_row(*row, f"{server.resident_megabytes:.1f}", f"{rate:,.0f}")
    return table


def generate(people: People, count: int) -> Iterator[tuple[str, Any]]:
    """Yield probes, each with the id of who is in it, or `nobody`."""
    for _ in range(0, count, PEOPLE):
        embeddings, owners = people.probes(PEOPLE)
        yield from zip((owner or "nobody" for owner in owners), embeddings, strict=True)


if __name__ == "__main__":
    main()
