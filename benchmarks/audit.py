"""What does the audit cost? A server that keeps decisions against one that keeps none, by turns in one run.

Both serve this checkout on data folders of their own, and only one is under load at a time. What is compared
is the CPU time of the whole process (all its threads), not the clock. Then entries alone are written, as many
in a transaction as that server gathers: other work on the machine blurs this less.

    python -m benchmarks.audit LFW_FOLDER [--data ~/.sameface] [--rounds 7] [--requests 300]
"""

import argparse
import resource
import tempfile
import time
from contextlib import ExitStack, closing
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from benchmarks.shared.lfw import read_lfw
from benchmarks.shared.load import run_load, verify_request
from benchmarks.shared.server import Server, serve
from sameface.model.store.access.audit import Entry
from sameface.model.store.store import Store

GATHERED = 10  # verifications of one client in the half second that is gathered, on a busy machine
WRITING_SECONDS = 1.0  # after which all decisions are written, so that their cost is counted


def main() -> None:
    """Start both servers, take turns, and print one table."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("lfw", type=Path)
    arguments.add_argument("--data", type=Path, default=Path("~/.sameface").expanduser())
    arguments.add_argument("--rounds", type=int, default=7)
    arguments.add_argument("--requests", type=int, default=300)
    options = arguments.parse_args()
    photos = [verify_request(pair.probe, pair.reference) for pair in read_lfw(options.lfw)[::15]]
    figures: dict[str, list[float]] = {"0": [], "365": []}
    with ExitStack() as opened:
        servers = {}
        for days in figures:
            folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
            (folder / "models").symlink_to((options.data / "models").resolve())
            servers[days] = opened.enter_context(serve(folder, "--threads", "1", "--audit-days", days))
            measure_cpu(servers[days], photos, 50)  # warms it up
        for turn in range(options.rounds):
            for days in sorted(figures, reverse=turn % 2 == 0):
                figures[days].append(measure_cpu(servers[days], photos, options.requests))
    ratios = [kept / none for kept, none in zip(figures["365"], figures["0"], strict=True)]
    table = Table("", "no decisions kept", "decisions kept", "ratio", "least to most")
    medians = [f"{median(figures[days]):.3f}" for days in ("0", "365")]
    spread = f"{min(ratios):.3f} to {max(ratios):.3f}"
    table.add_row("verify, CPU ms each", *medians, f"{median(ratios):.4f}", spread)
    alone = measure_entries(len(photos))
    share = f"{1 + alone / median(figures['0']):.4f}"
    table.add_row("an entry alone, CPU ms", "", f"{alone:.3f}", share, "")
    table.caption = f"medians of {options.rounds} rounds of {options.requests} requests by turns"
    Console(width=110).print(table)


def measure_cpu(server: Server, photos: list[bytes], count: int) -> float:
    """The server's CPU time for each of `count` verifications, in milliseconds, their writing included."""
    before = server.cpu_seconds
    answered = run_load(server, photos, 1, count=count).answers
    time.sleep(WRITING_SECONDS)
    return 1000 * (server.cpu_seconds - before) / len(answered)


def measure_entries(transactions: int) -> float:
    """The CPU time to make, hash and write an entry, user and system, in milliseconds."""
    with tempfile.TemporaryDirectory() as folder, closing(Store(Path(folder) / "gallery.db")) as store:
        store.audit.record([Entry(action="verify").to_columns()])
        before = resource.getrusage(resource.RUSAGE_SELF)
        for _ in range(transactions):
            made = [Entry(action="verify", similarity=0.7, started_at=1.0) for _ in range(GATHERED)]
            store.audit.record([entry.to_columns() for entry in made])
        after = resource.getrusage(resource.RUSAGE_SELF)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return 1000 * seconds / (transactions * GATHERED)


if __name__ == "__main__":
    main()
