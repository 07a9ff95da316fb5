"""Does the server's memory stay flat?

Photos of LFW are verified; or, with --probes, embeddings are identified in batches of every format, in a
gallery of 10,000 generated faces.

    python -m benchmarks.memory LFW_FOLDER [--data ~/.sameface] [--requests 20000] [--clients 4]
    python -m benchmarks.memory --probes 10000000 [--data ~/.sameface]
"""

import argparse
import itertools
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.search import Row, borrow_networks, enrol
from benchmarks.shared.batches import ask_batch, write_batches
from benchmarks.shared.lfw import read_lfw
from benchmarks.shared.load import run_load, verify_request
from benchmarks.shared.machine import describe_machine
from benchmarks.shared.people import FACES_EACH, People
from benchmarks.shared.server import Server, serve
from sameface.model.bundles.bundle import load_bundle

STEPS = 20
FACES = 10_000
DIFFERENT, ROWS = 4_096, 32_768  # probes, and the rows of one batch


def main() -> None:
    """Ask many times, and print the resident memory after each of STEPS steps."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("lfw", type=Path, nargs="?")
    arguments.add_argument("--data", type=Path, default=Path("~/.sameface").expanduser())
    arguments.add_argument("--requests", type=int, default=20_000)
    arguments.add_argument("--clients", type=int, default=4)
    arguments.add_argument("--probes", type=int, help="identify this many embeddings instead")
    options = arguments.parse_args()
    print(describe_machine())
    if options.probes:
        table = identify(options.data, options.probes)
    elif options.lfw:
        table = verify(options.data, options.lfw, options.requests, options.clients)
    else:
        arguments.error("name a folder of LFW, or --probes")
    Console().print(table)


def verify(data: Path, lfw: Path, count: int, clients: int) -> Table:
    """The memory while `count` pairs of photos are verified."""
    requests = [verify_request(pair.probe, pair.reference) for pair in read_lfw(lfw)]
    step = count // STEPS

    def ask(server: Server, number: int) -> int:
        offset = number * step % len(requests)
        load = run_load(server, requests[offset:] + requests[:offset], clients, count=step)
        return load.statuses[200]

    with serve(data) as server:
        return watch(server, ask)


def identify(data: Path, count: int) -> Table:
    """The memory while `count` probes are identified, in batches of each format in turn."""
    with tempfile.TemporaryDirectory() as folder:
        own = borrow_networks(data, Path(folder))
        bundle = load_bundle(own.recognizer)
        people = People(FACES // FACES_EACH, bundle.contract.dimension or 0)
        enrol(own, bundle, people, Row(FACES))
        probes, _ = people.probes(DIFFERENT)
        batches = itertools.cycle(write_batches(np.tile(probes, (ROWS // DIFFERENT, 1))))
        each = -(-count // (STEPS * ROWS))

        def ask(server: Server, _: int) -> int:
            for _ in range(each):
                ask_batch(server, next(batches))
            return each * ROWS

        with serve(own.root) as server:
            return watch(server, ask)


def watch(server: Server, ask: Callable[[Server, int], int]) -> Table:
    """The server's memory after each step; `ask` makes one, and returns how many answers came."""
    table = Table("answered", "resident MB", "of the first")
    answered, first = 0, 0.0
    for number in range(STEPS):
        answered += ask(server, number)
        now = server.resident_megabytes
        first = first or now
        table.add_row(f"{answered:,}", f"{now:.1f}", f"{now / first:.3f}")
    return table


if __name__ == "__main__":
    main()
