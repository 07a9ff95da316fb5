"""A Milvus server from a wheel, in an environment of its own; it can be killed and started again."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from benchmarks.rivals.environments import build_environment
from benchmarks.shared.server import read_resident_bytes

REQUIREMENTS = ("milvus==2.3.5", "setuptools<75", "marshmallow<4")
ENVIRONMENTS = Path("~/.cache/sameface-benchmarks").expanduser()
# Started again, it would else take another port, because connections to its own are still ending.
START = """
import socket, sys
from milvus import default_server as server

def bind(_, port):
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError:
        return None
    return listener

type(server.config).try_bind_port = bind
server.set_base_dir(sys.argv[1])
server.listen_port = int(sys.argv[2])
server.start()
print(server.server_proc.pid, flush=True)
sys.stdin.read()
"""


class MilvusServer:
    """Milvus standalone with its data in `folder`; one at a time, because its etcd has fixed ports."""

    def __init__(self, folder: Path, address: str = "127.0.0.1", within: Sequence[str] = ()) -> None:
        self.folder, self.address = folder, address
        self.within = within  # the command that runs another one on the machine of this address
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        self.python = build_environment(ENVIRONMENTS / "milvus", *REQUIREMENTS)
        self.start()

    @property
    def uri(self) -> str:
        """Its address."""
        return f"http://{self.address}:{self.port}"

    @property
    def resident_bytes(self) -> int:
        """Its memory now."""
        return read_resident_bytes(self.pid)

    def start(self) -> None:
        """Start it, and return once it takes connections: some ten seconds."""
        self.process = subprocess.Popen(
            [*self.within, self.python, "-c", START, str(self.folder), str(self.port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self.process.stdout
        said = self.process.stdout.readline()
        if not said:
            raise OSError("Milvus does not start here")
        self.pid = int(said)

    def kill(self) -> None:
        """End it at once, as kill -9 does, and return once it is gone."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self.process.kill()
        self.process.communicate()
        while Path(f"/proc/{self.pid}/exe").exists():
            time.sleep(0.05)
