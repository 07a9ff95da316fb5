"""A Milvus server from a wheel, in an environment of its own; it can be killed and started again."""

import json
import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from benchmarks.rivals.environments import build_environment
from benchmarks.shared.server import read_resident_bytes

REQUIREMENTS = ("milvus==2.3.5", "setuptools<75", "marshmallow<4")
ENVIRONMENTS = Path("~/.cache/sameface-benchmarks").expanduser()
START = """
import json, sys
from milvus import default_server as server
server.set_base_dir(sys.argv[1])
server.start()
print(json.dumps({"port": server.listen_port, "pid": server.server_proc.pid}), flush=True)
sys.stdin.read()
server.stop()
"""


class MilvusServer:
    """Milvus standalone with its data in `folder`; one at a time, because its etcd has fixed ports."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = build_environment(ENVIRONMENTS / "milvus", *REQUIREMENTS)
        self.start()

    @property
    def uri(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def resident_bytes(self) -> int:
        """Its memory now."""
        return read_resident_bytes(self.pid)

    def start(self) -> None:
        """Start it, and return once it takes connections: some ten seconds."""
        self.process = subprocess.Popen(
            [self.python, "-c", START, str(self.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self.process.stdout
        said = self.process.stdout.readline()
        if not said:
            raise OSError("Milvus does not start here")
        started = json.loads(said)
        self.port, self.pid = started["port"], started["pid"]

    def kill(self) -> None:
        """End it at once, as kill -9 does, and return once it is gone."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self.process.kill()
        self.process.communicate()
        while Path(f"/proc/{self.pid}/exe").exists():
            time.sleep(0.05)
