"""How long do admitted requests take when the server is overloaded?

Refused clients retry at once, which is the worst case, or after the seconds that the 429 names. The bound for
p99 is twice the median latency of a single client, times the photos per session that the server admits.

    python -m benchmarks.overload LFW_FOLDER [--data ~/.sameface] [--clients 64] [--seconds 20]
"""

import argparse
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.shared.lfw import read_lfw
from benchmarks.shared.load import Load, run_load, verify_request
from benchmarks.shared.server import Server, serve
from sameface.model.runtime.device import available_cores

QUEUE = 32  # photos


def main() -> None:
    """Load the server with one client, then overload it, and print the table."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("lfw", type=Path)
    arguments.add_argument("--data", type=Path, default=Path("~/.sameface").expanduser())
    arguments.add_argument("--clients", type=int, default=64)
    arguments.add_argument("--seconds", type=float, default=20.0)
    options = arguments.parse_args()
    requests = [verify_request(pair.probe, pair.reference) for pair in read_lfw(options.lfw)[::15]]
    sessions = available_cores()
    table = Table(
        "", "verifications/s", "refused/s", "p50 ms", "p99 ms", "of the bound", "other", "resident MB"
    )
    with serve(options.data, "--queue", str(QUEUE)) as server:
        run_load(server, requests, 1, seconds=2)
        alone = run_load(server, requests, 1, seconds=options.seconds)
        bound = 2 * alone.percentile(50) * (QUEUE + sessions) / sessions
        table.add_row("1 client", *describe(alone, bound, server))
        rude = run_load(server, requests, options.clients, seconds=options.seconds)
        table.add_row(f"{options.clients} clients, back at once", *describe(rude, bound, server))
        polite = run_load(server, requests, options.clients, seconds=options.seconds, patient=True)
        table.add_row(f"{options.clients} clients, back when told", *describe(polite, bound, server))
    table.caption = f"queue of {QUEUE} photos, {sessions} sessions: the bound is {bound:.0f} ms"
    Console(width=120).print(table)


def describe(load: Load, bound: float, server: Server) -> list[str]:
    """The figures of a row of the table."""
    statuses, p99 = load.statuses, load.percentile(99)
    return [
        f"{load.per_second:.1f}",
        f"{statuses[429] / load.seconds:.1f}",
        f"{load.percentile(50):.0f}",
        f"{p99:.0f}",
        f"{p99 / bound:.2f}",
        str(statuses.total() - statuses[200] - statuses[429]),
        f"{server.resident_megabytes:.0f}",
    ]


if __name__ == "__main__":
    main()
