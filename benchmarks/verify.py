"""How fast is /v1/verify, next to the bare path in process and to OpenCV's own?

python -m benchmarks.verify LFW_FOLDER [--data ~/.sameface] [--seconds 2.5] [--rounds 10]
"""

import argparse
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import cv2
from rich.console import Console
from rich.table import Table

from benchmarks.accuracy import open_from
from benchmarks.lfw import read_lfw
from benchmarks.load import Load, run_load, verify_requests
from benchmarks.opencv import OpenCvPath
from benchmarks.server import serve
from model.compare import measure_similarity
from model.pairs import Pair
from model.pipeline import Pipeline
from model.session import available_cores

CLIENTS = (1, 4, 16)
Verify = Callable[[bytes, bytes], object]


def main() -> None:
    """Measure in turns, so that the machine's moods hit everyone, and print the medians."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("lfw", type=Path)
    arguments.add_argument("--data", type=Path, default=Path("~/.sameface").expanduser())
    arguments.add_argument("--seconds", type=float, default=2.5)
    arguments.add_argument("--rounds", type=int, default=10)
    options = arguments.parse_args()
    pairs = read_lfw(options.lfw)[::15]
    requests, cores = verify_requests(pairs), available_cores()
    pipeline = open_from(options.data)
    opencv = [OpenCvPath(pipeline.detector.bundle.path, pipeline.embedder.bundle.path) for _ in range(cores)]
    rates: dict[str, list[float]] = {}
    loads: dict[int, list[Load]] = {clients: [] for clients in CLIENTS}

    with serve(options.data) as server:
        for _ in range(options.rounds):
            bare = [verify_in_process(pipeline)] * cores
            rates.setdefault("in process, all cores", []).append(measure(bare, pairs, options.seconds))
            cv2.setNumThreads(1)
            rates.setdefault(f"OpenCV {cv2.__version__}, {cores} x 1 thread", []).append(
                measure([verify_by_opencv(path) for path in opencv], pairs, options.seconds)
            )
            cv2.setNumThreads(cores)
            rates.setdefault(f"OpenCV {cv2.__version__}, 1 x {cores} threads", []).append(
                measure([verify_by_opencv(opencv[0])], pairs, options.seconds)
            )
            for clients in CLIENTS:
                loads[clients].append(run_load(server, requests, clients, seconds=options.seconds))
    pipeline.close()
    print_table(rates, loads, cores)


def verify_in_process(pipeline: Pipeline) -> Verify:
    """The server's own path without the server."""

    def verify(probe: bytes, reference: bytes) -> float:
        looks = [
            pipeline.embed_one_face("photo", photo, faces="prominent", min_quality=0)
            for photo in (probe, reference)
        ]
        return measure_similarity(looks[0].faces[0].embedding, looks[1].faces[0].embedding)

    return verify


def verify_by_opencv(path: OpenCvPath) -> Verify:
    """What a user would write."""

    def verify(probe: bytes, reference: bytes) -> object:
        one, other = path.embed(probe), path.embed(reference)
        return None if one is None or other is None else one @ other

    return verify


def measure(workers: list[Verify], pairs: list[Pair], seconds: float) -> float:
    """Verifications per second of these callables, each on a thread of its own."""
    photos = [(pair.probe.read_bytes(), pair.reference.read_bytes()) for pair in pairs]
    started = time.perf_counter()

    def run(verify: Verify) -> int:
        done = 0
        while time.perf_counter() - started < seconds:
            verify(*photos[done % len(photos)])
            done += 1
        return done

    with ThreadPoolExecutor(len(workers)) as executor:
        done = sum(executor.map(run, workers))
    return done / (time.perf_counter() - started)


def print_table(rates: dict[str, list[float]], loads: dict[int, list[Load]], cores: int) -> None:
    """One row per way of verifying."""
    bare = median(rates["in process, all cores"])
    opencv = max(median(values) for name, values in rates.items() if name.startswith("OpenCV"))
    table = Table(
        "", "verifications/s", "of in process", "of best OpenCV", "p50 ms", "p99 ms", "not 200", "client"
    )
    for name, values in rates.items():
        rate = median(values)
        table.add_row(name, f"{rate:.1f}", f"{rate / bare:.2f}", f"{rate / opencv:.2f}")
    for clients, runs in loads.items():
        rate = median(load.per_second for load in runs)
        p50, p99 = (median(load.percentile(share) for load in runs) for share in (50, 99))
        refused = sum(load.statuses.total() - load.statuses[200] for load in runs)
        share = median(load.client_cpu_seconds / load.seconds / cores for load in runs)
        numbers = f"{rate:.1f}", f"{rate / bare:.2f}", f"{rate / opencv:.2f}", f"{p50:.1f}", f"{p99:.1f}"
        table.add_row(f"HTTP, {clients} clients", *numbers, str(refused), f"{share:.1%} of the CPU")
    Console(width=130).print(table)


if __name__ == "__main__":
    main()
