"""How fast can detector and recogniser run on this machine, and which way to run them does `serve` pick?

Every combination of engine, graph, sessions, threads and batch size is timed by turns on random input.

    python -m benchmarks.limit [--data ~/.sameface] [--recognizer BUNDLE] [--seconds 2] [--rounds 3]
"""

import argparse
import itertools
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import onnx
import onnxruntime
from rich.console import Console
from rich.table import Table

from sameface.model.bundles.bundle import Bundle, load_bundle
from sameface.model.data_folder import DataFolder
from sameface.model.faces import Floats
from sameface.model.runtime import graph_rewrites as graph
from sameface.model.runtime import openvino as openvino_session
from sameface.model.runtime.device import available_cores
from sameface.model.runtime.openvino import OpenVinoSession
from sameface.model.runtime.precision.choice import AUTO, Precision, bf16_fault
from sameface.model.runtime.prepare_graph import PARITY, prepare_graph
from sameface.model.runtime.variants import WORTHWHILE

DETECTOR_SIDE = 256  # photos of 250 x 250, as in LFW, are padded to this side
ORT = "ONNX Runtime"
ENGINES = {  # by engine and precision in a report
    ("onnxruntime", "exact"): ORT,
    ("openvino", "exact"): "OpenVINO",
    ("openvino", "bf16"): "OpenVINO in bf16",
}
PUBLISHED = "shapes freed"  # the published graph with dynamic shapes and no other change
Run = Callable[[Floats], Any]


@dataclass(slots=True)
class Way:
    """A way to run a network, and its images per second in each round."""

    engine: str
    variant: str
    sessions: int
    threads: int
    batch: int
    runs: list[Run]
    rates: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """The median of images per second over the rounds."""
        return median(self.rates)


def main() -> None:
    """Time every way to run both networks, and print the tables."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--data", type=Path, default=Path("~/.sameface").expanduser())
    arguments.add_argument("--recognizer", type=Path, help="a bundle of your own")
    arguments.add_argument("--seconds", type=float, default=2.0)
    arguments.add_argument("--rounds", type=int, default=3)
    options = arguments.parse_args()
    folder, console, picked = DataFolder(options.data), Console(width=120), []
    for bundle in (load_bundle(folder.detector), load_bundle(options.recognizer or folder.recognizer)):
        sample = draw_sample(bundle)
        ways = list(list_ways(bundle))
        for _ in range(options.rounds):
            for way in ways:
                way.rates.append(measure(way, sample, options.seconds))
        chosen = find_picked(bundle, folder.cache, ways)
        picked.append((max(way.rate for way in ways), chosen.rate))
        console.print(describe(bundle, ways, chosen), explain(ways, chosen), "")
    for name, (detector, recogniser) in zip(("limit", "picked"), zip(*picked, strict=True), strict=True):
        console.print(f"{name}: {count_verifications(detector, recogniser):.1f} verifications per second")


def count_verifications(detector: float, recogniser: float) -> float:
    """Verifications per second if only the networks ran, on two photos each, at these images per second."""
    return 1 / (2 * (1 / detector + 1 / recogniser))


def draw_sample(bundle: Bundle) -> Floats:
    """A preprocessed image of noise, because zeros would hide slow operators."""
    width, height = bundle.contract.input_size
    side = DETECTOR_SIDE if bundle.contract.kind == "detector" else None
    shape = (1, side or height, side or width, 3)
    return bundle.preprocess(np.random.default_rng(0).integers(0, 256, shape, np.uint8))


def list_ways(bundle: Bundle) -> Iterator[Way]:
    """Every combination of engine, graph, sessions and threads, and for the recogniser of batches."""
    cores = available_cores()
    shapes = [(1, 1, 1), (cores, 1, 1), (1, cores, 1)]  # sessions, threads per session, batch size
    if bundle.contract.kind == "recogniser":
        shapes += [(cores, 1, 4), (cores, 1, 8)]
    for (variant, network), (sessions, threads, batch) in itertools.product(list_graphs(bundle), shapes):
        runs = [open_onnx(network, threads) for _ in range(sessions)]
        yield Way(ORT, variant, sessions, threads, batch, runs)
    freed = dict(list_graphs(bundle))[PUBLISHED]
    for precision, sessions in itertools.product(list_precisions(bundle), dict.fromkeys((1, cores))):
        runs = [open_openvino(freed, precision) for _ in range(sessions)]
        yield Way(ENGINES["openvino", precision], PUBLISHED, sessions, 1, 1, runs)


def list_precisions(bundle: Bundle) -> list[str]:
    """The precisions in which OpenVINO may run the network here: none where it is not installed."""
    if not openvino_session.find_version():
        return []
    lower = bundle.contract.kind == "recogniser" and bf16_fault() is None
    return ["exact", "bf16"] if lower else ["exact"]


def list_graphs(bundle: Bundle) -> list[tuple[str, bytes]]:
    """The published graph with dynamic shapes and, if it has PRelu, another with PRelu split."""
    network = onnx.load(bundle.path)
    graph.strip_initialiser_inputs(network)
    free = {0: "batch"} if bundle.contract.kind == "recogniser" else {2: "height", 3: "width"}
    graph.free_shapes(network, free)
    graphs = [(PUBLISHED, bytes(network.SerializeToString()))]
    if graph.has_prelu(network):
        graph.split_prelu(network)
        graphs.append(("PRelu split", bytes(network.SerializeToString())))
    return graphs


def open_onnx(network: bytes, threads: int) -> Run:
    """A session of ONNX Runtime with this number of intra-op threads."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(network, options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return lambda pixels: session.run(None, {name: pixels})


def open_openvino(network: bytes, precision: str) -> Run:
    """A session of OpenVINO with one thread."""
    session = OpenVinoSession(network, precision)
    name = session.input_name
    return lambda pixels: session.run(None, {name: pixels})


def measure(way: Way, sample: Floats, seconds: float) -> float:
    """Images per second after a warm-up, every session called by its own thread."""
    pixels = np.repeat(sample, way.batch, axis=0)
    for run in way.runs:
        run(pixels)
    done = [0] * len(way.runs)
    started = time.perf_counter()

    def work(place: int) -> None:
        while time.perf_counter() - started < seconds:
            way.runs[place](pixels)
            done[place] += way.batch

    callers = [threading.Thread(target=work, args=(place,)) for place in range(len(way.runs))]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    return sum(done) / (time.perf_counter() - started)


def find_picked(bundle: Bundle, cache: Path, ways: Iterable[Way], precision: Precision = AUTO) -> Way:
    """The way that `prepare_graph` chooses for the server."""
    _, report = prepare_graph(bundle, "cpu", cache, precision)
    engine = ENGINES[report["engine"], report["precision"]]
    variant = "PRelu split" if report["split_prelu"] else PUBLISHED
    wanted = (engine, variant, available_cores(), 1, report["batch_size"])
    return next(
        way for way in ways if (way.engine, way.variant, way.sessions, way.threads, way.batch) == wanted
    )


def explain(ways: list[Way], chosen: Way) -> str:
    """The reason why `serve` picks `chosen`, with the relative speeds of its rivals."""
    rivals: dict[str, Callable[[Way], bool]] = {
        "the published graph in ONNX Runtime": lambda way: (way.engine, way.variant) == (ORT, PUBLISHED),
        "one session on all cores": lambda way: way.threads > 1,
        "batches": lambda way: way.batch > 1,
    }
    rates = {name: [way.rate for way in ways if fits(way)] for name, fits in rivals.items()}
    shares = [f"{name} {max(rate) / chosen.rate:.2f}" for name, rate in rates.items() if rate]
    return (
        f"serve picks {chosen.engine}, {chosen.variant}, a session per core: the fastest of those whose "
        f"outputs are the published ones to {PARITY:g}, or in bf16 proved by faces; "
        f"a rewrite or another engine must take {1 - WORTHWHILE:.0%} less time. "
        f"Of its speed has, at best: {', '.join(shares)}."
    )


def describe(bundle: Bundle, ways: list[Way], chosen: Way) -> Table:
    """A table with a row for every way, fastest first."""
    best = max(way.rate for way in ways)
    table = Table(
        "engine",
        "graph",
        "sessions x threads",
        "batch",
        "images/s",
        "of the best",
        "",
        title=bundle.contract.name,
    )
    for way in sorted(ways, key=lambda way: -way.rate):
        table.add_row(
            way.engine,
            way.variant,
            f"{way.sessions} x {way.threads}",
            str(way.batch),
            f"{way.rate:.1f}",
            f"{way.rate / best:.2f}",
            "what serve picks" if way is chosen else "",
        )
    return table


if __name__ == "__main__":
    main()
