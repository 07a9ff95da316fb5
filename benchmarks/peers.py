"""How fast is a verification, next to the networks alone and to its peers OpenCV and deepface?

All have the same photos and weights and run by turns, so that the machine's noise hits all alike: sameface
over HTTP, with its defaults, exact, and with a bundle of eight bits; OpenCV in process, the newest and the
newest of version 4, with its own threads and with a caller per core; the REST server of deepface with one
worker, as its own script starts it, and with one per core. Every peer is installed into its own virtual
environment in the data folder's cache. The limit of a server is its own networks, as it runs them.

    python -m benchmarks.peers LFW_FOLDER [--int8 BUNDLE] [--data ~/.sameface] [--seconds 2.5] [--rounds 8]
"""

import argparse
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.limit import (
    ENGINES,
    Way,
    count_verifications,
    draw_sample,
    find_picked,
    list_ways,
    measure,
)
from benchmarks.rivals import deepface, opencv
from benchmarks.rivals.environments import ask_version, build_environment
from benchmarks.shared.lfw import read_lfw
from benchmarks.shared.load import Load, run_load, verify_request
from benchmarks.shared.machine import describe_machine
from benchmarks.shared.server import Server, serve
from sameface.model.bundles.bundle import Bundle, load_bundle
from sameface.model.data_folder import DataFolder
from sameface.model.measurement.lfw_pairs import Pair
from sameface.model.runtime.device import available_cores
from sameface.model.runtime.precision.choice import AUTO, EXACT, Precision

CLIENTS = (1, 4, 16)
Bundles = tuple[Bundle, Bundle]  # detector, recogniser


@dataclass(slots=True)
class Networks:
    """A detector and a recogniser as a server runs them, and their verifications per second in each round."""

    name: str
    bundles: Bundles
    ways: list[Way]
    limits: list[float] = field(default_factory=list)

    def measure(self, seconds: float) -> None:
        """Add the verifications per second if only the networks ran."""
        detector, recogniser = (
            measure(way, draw_sample(bundle), seconds)
            for way, bundle in zip(self.ways, self.bundles, strict=True)
        )
        self.limits.append(count_verifications(detector, recogniser))


@dataclass(slots=True)
class Row:
    """A way to verify, and its load in each round."""

    name: str
    ask: Callable[..., Load]  # takes `seconds` or `count`, after which the load ends
    ask_every_pair: Callable[[], Load]  # cached: all rows of one server share it
    verdict: str  # the field of an answer that says whether it is the same person
    networks: Networks
    loads: list[Load] = field(default_factory=list)

    def middle(self, figure: Callable[[Load], float]) -> float:
        """The median of `figure` over the rounds."""
        return median(figure(load) for load in self.loads)

    def judge(self, pairs: list[Pair]) -> tuple[int, int]:
        """The number of pairs decided correctly by the peer's own threshold, and the number answered."""
        answers = [answer for answer in self.ask_every_pair().answers if answer.status == 200]
        right = [answer.read()[self.verdict] == pairs[answer.number].same_person for answer in answers]
        return sum(right), len(right)


def main() -> None:
    """Measure by turns and print the medians."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("lfw", type=Path)
    arguments.add_argument("--data", type=Path, default=Path("~/.sameface").expanduser())
    arguments.add_argument("--int8", type=Path, help="a bundle of eight bits")
    arguments.add_argument("--seconds", type=float, default=2.5)
    arguments.add_argument("--rounds", type=int, default=8)
    options = arguments.parse_args()
    machine = describe_machine()
    pairs, folder = read_lfw(options.lfw)[::15], DataFolder(options.data)
    with ExitStack() as opened:
        rows = list(list_own(opened, folder, pairs, options.int8))
        default = rows[0].networks
        rows += list_opencv(folder.cache / "peers", default, pairs)
        rows += list_deepface(opened, folder.cache / "peers", default, pairs)
        for row in rows:
            row.ask_every_pair()  # which also is the warm-up
        every = {id(row.networks): row.networks for row in rows}.values()
        for _ in track(range(options.rounds), transient=True):
            for networks in every:
                networks.measure(options.seconds)
            for row in rows:
                row.loads.append(row.ask(seconds=options.seconds))
    Console(width=150).print(machine, describe(rows, list(every), pairs))


def list_own(opened: ExitStack, folder: DataFolder, pairs: list[Pair], int8: Path | None) -> Iterator[Row]:
    """The server of sameface with its defaults, with one worker per core, exact, and with eight bits."""
    requests = [verify_request(pair.probe, pair.reference) for pair in pairs]
    default = load_bundle(folder.recognizer)
    networks = open_networks("the networks alone", folder, default)
    offers: list[tuple[Networks, tuple[str, ...]]] = [
        (networks, ()),
        (networks, ("--workers", str(available_cores()))),
    ]
    if networks.ways[1].engine == ENGINES["openvino", "bf16"]:
        exact = open_networks("the networks alone, exact", folder, default, EXACT)
        offers.append((exact, ("--precision", "exact")))
    if int8:
        eight = open_networks("the networks alone, eight bits", folder, load_bundle(int8))
        offers.append((eight, ("--recognizer", str(int8))))
    for own, flags in offers:
        server = opened.enter_context(serve(folder.root, *flags))
        name = " ".join(("sameface serve", *(Path(flag).name for flag in flags)))
        yield from list_clients(name, server, requests, "same_person", own)


def open_networks(name: str, folder: DataFolder, recogniser: Bundle, precision: Precision = AUTO) -> Networks:
    """The detector and a recogniser, each run as a server with this precision does."""
    bundles = load_bundle(folder.detector), recogniser
    ways = [find_picked(bundle, folder.cache, list_ways(bundle), precision) for bundle in bundles]
    return Networks(name, bundles, ways)


def list_opencv(place: Path, networks: Networks, pairs: list[Pair]) -> Iterator[Row]:
    """Two versions of OpenCV, each with one caller and its own threads, and with one caller per core."""
    detector, recogniser = (bundle.path for bundle in networks.bundles)
    cores = available_cores()
    for requirement, folder in (
        ("opencv-python-headless", "opencv"),
        ("opencv-python-headless<5", "opencv4"),
    ):
        python = build_environment(place / folder, requirement)
        version = ask_version(python, "opencv-python-headless")
        for callers, threads in dict.fromkeys(((1, cores), (cores, 1))):
            ask = partial(opencv.ask, python, detector, recogniser, pairs, callers, threads)
            every_pair = cache(partial(ask, count=len(pairs)))
            name = f"OpenCV {version} in process, {callers} x {threads} threads"
            yield Row(name, ask, every_pair, "same_person", networks)


def list_deepface(opened: ExitStack, place: Path, networks: Networks, pairs: list[Pair]) -> Iterator[Row]:
    """The server of deepface with one worker, and with one per core."""
    python = build_environment(place / "deepface", *deepface.REQUIREMENTS)
    version = ask_version(python, "deepface")
    weights = [bundle.path for bundle in networks.bundles]
    requests = [deepface.verify_request(pair) for pair in pairs]
    for workers in dict.fromkeys((1, available_cores())):
        server = opened.enter_context(deepface.serve_deepface(python, place / "home", weights, workers))
        name = f"deepface {version}, {workers} workers"
        yield from list_clients(name, server, requests, "verified", networks)


def list_clients(
    name: str, server: Server, requests: list[bytes], verdict: str, networks: Networks
) -> Iterator[Row]:
    """A row of `server` for every number of clients."""
    every_pair = cache(partial(run_load, server, requests, max(CLIENTS), count=len(requests)))
    for clients in CLIENTS:
        ask = partial(run_load, server, requests, clients)
        yield Row(f"{name}, {clients} clients", ask, every_pair, verdict, networks)


def describe(rows: list[Row], every: list[Networks], pairs: list[Pair]) -> Table:
    """A table of the limits and of every way to verify, with its share of its limit in the same round."""
    table = Table(
        "", "verifications/s", "of the limit", "p50 ms", "p99 ms", "right", "no answer", "client's CPU"
    )
    for networks in every:
        table.add_row(networks.name, f"{median(networks.limits):.1f}", "1.00")
    for row in rows:
        shares = [load.per_second / limit for load, limit in zip(row.loads, row.networks.limits, strict=True)]
        right, answered = row.judge(pairs)
        table.add_row(
            row.name,
            f"{row.middle(lambda load: load.per_second):.1f}",
            f"{median(shares):.2f}",
            f"{row.middle(lambda load: load.percentile(50)):.0f}",
            f"{row.middle(lambda load: load.percentile(99)):.0f}",
            f"{right} of {answered}",
            str(len(pairs) - answered),
            f"{row.middle(lambda load: load.client_cpu_seconds / load.seconds) / available_cores():.1%}",
        )
    return table


if __name__ == "__main__":
    main()
