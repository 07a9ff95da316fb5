"""Starts `sameface serve` on a free port, as a user would, and stops it."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

LOOK_SECONDS, IDLE_SECONDS = 0.5, 0.02  # of the clock between two looks, and of CPU time in between


@dataclass(frozen=True, slots=True)
class Server:
    """A running server process."""

    pid: int
    host: str
    port: int

    @property
    def resident_megabytes(self) -> float:
        """Resident memory of the process now."""
        return read_resident_bytes(self.pid) / 1024**2

    @property
    def cpu_seconds(self) -> float:
        """CPU time of the process so far, user and system, as getrusage counts it."""
        fields = Path(f"/proc/{self.pid}/stat").read_text("ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rest(self) -> None:
        """Wait until the server has nothing to do: it writes the audit after it has answered."""
        before = -1.0
        while self.cpu_seconds - before > IDLE_SECONDS:
            before = self.cpu_seconds
            time.sleep(LOOK_SECONDS)


def read_resident_bytes(pid: int) -> int:
    """Resident memory of the process `pid` now."""
    status = Path(f"/proc/{pid}/status").read_text("ascii")
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) * 1024  # type: ignore[index]


@contextmanager
def serve(data: Path, *flags: str, checkout: Path | None = None) -> Iterator[Server]:
    """Start `sameface serve`, yield it once it is ready, and stop it; of `checkout` if one is named.

    A checkout without a `.venv` of its own is run in this environment.
    """
    own = checkout / ".venv" / "bin" / "python" if checkout else None
    python = str(own) if own and own.exists() else sys.executable
    command = [python, "-m", "sameface", "serve", "--port", "0", "--log-level", "warning", *flags]
    environment = os.environ | {"SAMEFACE_DATA": str(data), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=environment, cwd=checkout
    ) as process:
        try:
            assert process.stdout
            announced = (
                re.search(r"curl .*http://([\d.]+):(\d+)/v1/verify", line) for line in process.stdout
            )
            found = next(match for match in announced if match)
            yield Server(process.pid, found[1], int(found[2]))
        finally:
            process.terminate()
