"""A TCP proxy before a Unix socket, which can delay what passes, or cut all connections."""

import selectors
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path


class DelayingProxy:
    """Passes bytes between clients of `address` and the server's socket, each after `delay_seconds`."""

    def __init__(self, server: Path) -> None:
        self.server = server
        self.delay_seconds = 0.0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Close all connections, as a network does that fails; new ones are taken."""
        while self._open:
            with suppress(OSError):
                self._open.pop().shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Take no more connections, and end those there are."""
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server, suppress(OSError):
            server.connect(str(self.server))
            self._open += [client, server]
            waiting = selectors.DefaultSelector()
            for one, other in ((client, server), (server, client)):
                waiting.register(one, selectors.EVENT_READ, other)
            while True:
                for ready, _ in waiting.select():
                    content = ready.fileobj.recv(65536)
                    if not content:
                        return
                    time.sleep(self.delay_seconds)
                    ready.data.sendall(content)
