"""Stops a server in two steps: first it is not ready, then its port closes."""

import logging
import signal
import socket
import threading
from types import FrameType

import uvicorn
from fastapi import FastAPI

from sameface.api.server.sockets import remove_socket_file

log = logging.getLogger("sameface")


class DrainingServer(uvicorn.Server):
    """Goes on answering for `seconds` after SIGTERM, while /health/ready says 503.

    A load balancer that polls readiness then sends its requests elsewhere before the port closes. SIGINT, or
    a second SIGTERM, closes the port at once.
    """

    def __init__(self, config: uvicorn.Config, application: FastAPI, seconds: float) -> None:
        super().__init__(config)
        self.application = application
        self.seconds = seconds

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Called by uvicorn for SIGTERM and SIGINT."""
        if sig != signal.SIGTERM or self.application.state.stopping or not self.seconds:
            return super().handle_exit(sig, frame)
        self.application.state.stopping = True
        log.info("stopping: not ready from now on, and the port closes in %g s", self.seconds)
        later = threading.Timer(self.seconds, super().handle_exit, (sig, frame))
        later.daemon = True
        later.start()
        return None

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Called by uvicorn to stop listening; a socket of several workers is the supervisor's."""
        if self.application.state.settings.workers == 1:
            for listener in sockets or []:
                remove_socket_file(listener)
        await super().shutdown(sockets)
