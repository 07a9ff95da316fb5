"""Does the server's memory stay flat?

python -m benchmarks.memory LFW_FOLDER [--data ~/.sameface] [--requests 20000] [--clients 4]
"""

import argparse
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.shared.lfw import read_lfw
from benchmarks.shared.load import run_load, verify_request
from benchmarks.shared.server import serve

STEPS = 20


def main() -> None:
    """Verify many times, and print the resident memory after each of STEPS steps."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("lfw", type=Path)
    arguments.add_argument("--data", type=Path, default=Path("~/.sameface").expanduser())
    arguments.add_argument("--requests", type=int, default=20_000)
    arguments.add_argument("--clients", type=int, default=4)
    options = arguments.parse_args()
    requests = [verify_request(pair.probe, pair.reference) for pair in read_lfw(options.lfw)]
    step = options.requests // STEPS
    table = Table("requests", "answered 200", "resident MB", "of the first")
    with serve(options.data) as server:
        answered, first = 0, 0.0
        for number in range(1, STEPS + 1):
            offset = (number - 1) * step % len(requests)
            load = run_load(server, requests[offset:] + requests[:offset], options.clients, count=step)
            answered += load.statuses[200]
            first = first or server.resident_megabytes
            row = server.resident_megabytes
            table.add_row(str(number * step), str(answered), f"{row:.1f}", f"{row / first:.3f}")
    Console().print(table)


if __name__ == "__main__":
    main()
