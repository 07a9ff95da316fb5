"""Milvus Lite as a server process of its own, which can be killed, and waiting for what it was fed."""

import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from shutil import rmtree

from sameface.model.data_folder import MilvusAddress
from sameface.model.gallery.gallery import Gallery


class LiteServer:
    """A server of Milvus Lite on a port of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.address = MilvusAddress(f"http://127.0.0.1:{self.port}")
        self.start()

    def start(self) -> None:
        """Start it, and return once it takes connections."""
        command = [sys.executable, "-m", "milvus_lite", "server", "--data-dir", str(self.folder)]
        self.process = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", str(self.port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            time.sleep(0.05)
        raise TimeoutError("Milvus Lite does not start")

    def kill(self) -> None:
        """End it at once, as kill -9 does."""
        self.process.kill()
        self.process.wait()

    def lose_everything(self) -> None:
        """Kill it, delete its data and start it again."""
        self.kill()
        rmtree(self.folder)
        self.start()


def wait_until_fed(gallery: Gallery, name: str, seconds: float = 30) -> None:
    """Return once Milvus has all changes of the collection `name`, and searches may rely on it."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        collection = gallery.get_collection(name)
        feed = gallery.store.feeds.get(collection)
        if feed.mark and feed.sequence == collection.revision:
            return
        time.sleep(0.02)
    raise TimeoutError(f"Milvus is at {feed} of {collection.revision}")
