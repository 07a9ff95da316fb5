"""How long is the tail of a gallery that Milvus searches, and what does it cost a search?

    .venv/bin/python -m benchmarks.tail

The feeder is simulated in its own time, with its own constants: enrolments come at a rate, rounds send them
as fast as Milvus takes them, and a mark counts once Milvus is so many seconds past it. No Milvus is needed,
and the number of faces behind the tail does not matter: a search compares the tail and what Milvus finds.
What the tail costs is then measured with the tail itself, of embeddings of 128 numbers.
"""

import argparse
import time
from collections import deque

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.shared.people import People
from sameface.model.gallery.index.milvus.feeder import FEED_ROWS, PAUSE_SECONDS, TRUST_SECONDS
from sameface.model.gallery.index.milvus.milvus_engine import MOST_TAIL
from sameface.model.gallery.index.milvus.tail import Tail
from sameface.model.store.records import FaceBlock, FaceChanges

DIMENSION = 128
RATES = (100, 1_000, 5_000)  # enrolments a second
BEHIND = (10, 30, 60)  # seconds
SIMULATED_SECONDS = 600
MEASURED_SECONDS = 1.0


def simulate(rate: int, behind: float, capacity: int) -> int:
    """The longest tail, in changes."""
    now, sent, settled, longest = 0.0, 0, 0, 0
    marks: deque[tuple[float, int]] = deque()
    while now < SIMULATED_SECONDS:
        revision = int(rate * now)
        taken = min(FEED_ROWS, revision - sent)
        if taken:
            now += taken / capacity
            sent += taken
            marks.append((now, sent))
        now += 0 if sent < revision else PAUSE_SECONDS
        while marks and now - marks[0][0] >= behind:
            settled = marks.popleft()[1]
        longest = max(longest, int(rate * (now + TRUST_SECONDS)) - settled)  # a search learns of it that late
    return longest


def fill(changes: int) -> Tail:
    """A tail of so many faces, five per person."""
    tail = Tail(DIMENSION, 0)
    keys = np.arange(1, changes + 1)
    block = FaceBlock(keys, keys // 5, People(changes, DIMENSION).centres)
    tail.follow(changes, lambda _: [FaceChanges(changes, block, np.empty(0, np.int64))])
    return tail


def measure(tail: Tail, probes: int) -> float:
    """The median milliseconds of a search with so many probes."""
    asked = People(probes, DIMENSION).centres
    spent: list[float] = []
    until = time.perf_counter() + MEASURED_SECONDS
    while time.perf_counter() < until or len(spent) < 3:
        start = time.perf_counter()
        tail.search(asked, 5)
        spent.append(time.perf_counter() - start)
    return 1000 * float(np.median(spent))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--capacity", type=int, default=8_000, help="faces a second that Milvus takes")
    capacity = parser.parse_args().capacity
    table = Table("enrolments/s", "Milvus behind, s", "tail, changes", "MB", "1 probe, ms", "100 probes, ms")
    for rate in RATES:
        for behind in BEHIND:
            longest = simulate(rate, behind, capacity)
            row = [f"{rate:,}", str(behind), f"{longest:,}", f"{longest * (4 * DIMENSION + 17) / 1e6:.1f}"]
            if longest > MOST_TAIL:
                table.add_row(*row, "refused", "refused")
                continue
            tail = fill(longest)
            table.add_row(*row, f"{measure(tail, 1):.2f}", f"{measure(tail, 100):.1f}")
    Console().print(table)


if __name__ == "__main__":
    main()
