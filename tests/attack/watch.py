"""Watches a server from a process of its own: the memory it takes, and how late it says that it lives."""

import http.client
import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

SAMPLE_SECONDS = 0.05
ASK_SECONDS = 0.1
PATIENCE = 60.0  # seconds to wait for one answer


@dataclass(slots=True)
class Measures:
    """What was seen of a server."""

    peak_megabytes: float = 0.0
    slowest_ms: float = 0.0


def read_megabytes(pid: int, field: str = "VmRSS") -> float:
    """The memory of a process by a field of its status, 0 if it has ended."""
    try:
        found = re.search(rf"{field}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text("ascii"))
    except OSError:
        return 0.0
    return int(found[1]) / 1024 if found else 0.0


def list_processes(pid: int) -> list[int]:
    """A process and its children."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
    except OSError:
        children = []
    return [pid, *map(int, children)]


def forget_peak(pid: int) -> None:
    """Let the kernel measure the highest memory of a process anew, where it allows that."""
    with suppress(OSError):
        Path(f"/proc/{pid}/clear_refs").write_text("5", "ascii")


@contextmanager
def watching(pid: int, host: str, port: int, measures: Measures) -> Iterator[None]:
    """Watch a server during the block; what is seen is added to `measures`."""
    words = [sys.executable, "-m", "tests.attack.watch", str(pid), host, str(port)]
    watcher = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        watcher.stdout.readline()  # it has begun
        yield
    finally:
        said, _ = watcher.communicate()
        seen = Measures(**json.loads(said))
        measures.peak_megabytes = max(measures.peak_megabytes, seen.peak_megabytes)
        measures.slowest_ms = max(measures.slowest_ms, seen.slowest_ms)


def sample_memory(pid: int, measures: Measures, end: threading.Event) -> None:
    """Note the highest memory of the server's processes together, and of the first by the kernel's count."""
    forget_peak(pid)
    over = False
    while not over:
        over = end.wait(SAMPLE_SECONDS)  # the last sample is taken at the end, however soon that is
        together = sum(map(read_megabytes, list_processes(pid)))
        measures.peak_megabytes = max(measures.peak_megabytes, together, read_megabytes(pid, "VmHWM"))


def ask_whether_it_lives(host: str, port: int, measures: Measures, end: threading.Event) -> None:
    """Note the slowest answer on one connection that is kept; a server that has ended answers nothing."""
    connection = http.client.HTTPConnection(host, port, timeout=PATIENCE)
    over = False
    while not over:
        over = end.wait(ASK_SECONDS)
        started = time.perf_counter()
        try:
            connection.request("GET", "/health/live")
            connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            connection.close()
            continue
        measures.slowest_ms = max(measures.slowest_ms, 1000 * (time.perf_counter() - started))


def main() -> None:
    """Watch until the input ends, and print what was seen."""
    pid, host, port = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    measures, end = Measures(), threading.Event()
    threads = [
        threading.Thread(target=sample_memory, args=(pid, measures, end)),
        threading.Thread(target=ask_whether_it_lives, args=(host, port, measures, end)),
    ]
    for thread in threads:
        thread.start()
    print("watching", flush=True)
    sys.stdin.read()
    end.set()
    for thread in threads:
        thread.join()
    print(json.dumps({"peak_megabytes": measures.peak_megabytes, "slowest_ms": measures.slowest_ms}))


if __name__ == "__main__":
    main()
