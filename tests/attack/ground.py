"""Where an attack happens: real servers and commands on a fresh data folder, watched."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.api.keys import make_key
from tests.attack.watch import SAMPLE_SECONDS, Measures, read_megabytes, watching

Prepare = Callable[[], None]  # called in a new process before its program

STOP_SECONDS = 60.0  # before a server that does not stop is killed


@dataclass(frozen=True, slots=True)
class Networks:
    """The networks that are attacked, and photos in which they find a face each."""

    recognizer: Path
    detector: Path
    cache: Path  # prepared graphs
    photos: tuple[bytes, ...]


@dataclass(slots=True)
class Server:
    """A running server, with a key of each scope; the keys are empty if it takes none."""

    process: subprocess.Popen[str]
    address: httpx.URL
    log_file: Path
    keys: dict[str, str] = field(default_factory=dict)

    @property
    def megabytes(self) -> float:
        """Resident memory now."""
        return read_megabytes(self.process.pid)

    @property
    def log(self) -> str:
        """What it has logged."""
        return self.log_file.read_text("utf-8", "replace")

    def authorization(self, scope: str = "read+write") -> dict[str, str]:
        """The header with the key of a scope."""
        return {"Authorization": f"Bearer {self.keys[scope]}"} if self.keys else {}

    def client(self, scope: str = "read+write") -> httpx.Client:
        """A client with the key of a scope."""
        return httpx.Client(base_url=self.address, timeout=60, headers=self.authorization(scope))

    def stop(self) -> float:
        """Ask the server to end, and return the seconds until it has; one that does not is killed."""
        started = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        return time.monotonic() - started


class Ground:
    """A data folder for one attack, the servers and commands on it, and what was measured of the servers."""

    def __init__(self, networks: Networks, folder: Path) -> None:
        self.networks = networks
        self.folder = folder
        self.data = folder / "data"
        self.measures = Measures()
        self.faults: list[str] = []  # what servers have logged that nobody should have to read
        self.data.mkdir(parents=True)
        networks.cache.mkdir(exist_ok=True)
        (self.data / "cache").symlink_to(networks.cache)

    @property
    def photo(self) -> bytes:
        """An ordinary photo."""
        return self.networks.photos[0]

    @contextmanager
    def serve(
        self, *flags: str, keys: bool = True, prepare: Prepare | None = None, **settings: object
    ) -> Iterator[Server]:
        """Start a server that is watched, and stop it."""
        server = self.start(*flags, keys=keys, prepare=prepare, **settings)
        try:
            with watching(server.process.pid, server.address.host, server.address.port, self.measures):
                yield server
        finally:
            server.stop()
            server.process.stdout.close()
            self.faults += find_faults(server.log)

    def start(
        self, *flags: str, keys: bool = True, prepare: Prepare | None = None, **settings: object
    ) -> Server:
        """A server that has said that it is ready."""
        made = {scope: make_key(scope) for scope in ("read", "write", "read+write")} if keys else {}
        if made:
            settings["api_keys"] = ",".join(entry for _, entry in made.values())
        log_file = self.folder / f"server-{time.monotonic_ns()}.log"
        process = self.launch(log_file, *flags, prepare=prepare, **settings)
        announced = process.stdout.readline()
        if "address" not in announced:
            process.wait()
            raise RuntimeError(f"the server did not start: {announced}{log_file.read_text('utf-8')}")
        secrets = {scope: secret for scope, (secret, _) in made.items()}
        return Server(process, httpx.URL(json.loads(announced)["address"]), log_file, secrets)

    def launch(
        self, log_file: Path, *flags: str, prepare: Prepare | None = None, **settings: object
    ) -> subprocess.Popen[str]:
        """A server process that has just begun; it logs into a file, and does not drain when stopped."""
        variables = {
            name if name.isupper() else f"SAMEFACE_{name.upper()}": str(value)
            for name, value in {"drain_seconds": 0, **settings}.items()
        }
        words = [sys.executable, "-m", "sameface", "serve", "--port", "0", "--json", *flags]
        with log_file.open("a") as log:
            return subprocess.Popen(
                words,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                preexec_fn=prepare,
                env=self.environment | variables,
            )

    @property
    def environment(self) -> dict[str, str]:
        """The variables of servers and commands: none of the settings of whoever attacks."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SAMEFACE_")}
        return kept | {
            "SAMEFACE_DATA": str(self.data),
            "SAMEFACE_RECOGNIZER": str(self.networks.recognizer),
            "SAMEFACE_DETECTOR": str(self.networks.detector),
            "PYTHONUNBUFFERED": "1",
            "COLUMNS": "200",
        }

    def run(self, *words: object, prepare: Prepare | None = None, seconds: float = 120) -> "Ran":
        """Run a Python program, and note the memory that it takes; one that takes too long is killed."""
        with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryFile("w+") as complained:
            command = [sys.executable, *map(str, words)]
            process = subprocess.Popen(
                command, stdout=said, stderr=complained, preexec_fn=prepare, env=self.environment
            )
            ends, peak = time.monotonic() + seconds, 0.0
            while process.poll() is None:
                peak = max(peak, read_megabytes(process.pid, "VmHWM"))
                if time.monotonic() > ends:
                    process.kill()
                time.sleep(SAMPLE_SECONDS)
            said.seek(0)
            complained.seek(0)
            self.measures.peak_megabytes = max(self.measures.peak_megabytes, peak)
            return Ran(process.returncode, said.read(), complained.read(), peak)

    def sameface(self, *words: object, **options: object) -> "Ran":
        """Run a command of sameface."""
        return self.run("-m", "sameface", *words, **options)


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command did."""

    code: int
    said: str
    complained: str
    peak_megabytes: float

    @property
    def refused(self) -> bool:
        """Whether it has ended with a sentence, as commands do that cannot do what they were asked."""
        return self.code == 2 and "Traceback" not in self.complained


def find_faults(log: str) -> list[str]:
    """The lines of a log that tell of an error, and the first of each traceback."""
    return [line for line in log.splitlines() if " ERROR " in line or line.startswith("Traceback")]
