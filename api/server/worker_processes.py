"""Forks workers that share one socket, replaces a worker that dies, and stops all together."""

import logging
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

from sameface.model.errors import CannotServe

log = logging.getLogger("sameface.supervisor")

FAILED = 2  # the exit code of a worker that cannot serve: its replacement could not either


class Supervisor:
    """Keeps `count` workers running until SIGTERM or SIGINT, and passes SIGHUP on to them.

    Workers are forked before any network is opened, so that they share nothing but the socket; each follows
    the gallery's change sequence to see what another has written.
    """

    def __init__(
        self,
        count: int,
        serve: Callable[[int], None],
        on_gone: Callable[[int], None],
        on_hangup: Callable[[], None] | None,
    ) -> None:
        self.count = count
        self.serve = serve
        self.on_gone = on_gone  # called with the process id of a worker that has ended
        self.on_hangup = (
            on_hangup  # called for SIGHUP, in every worker and here, where new ones are forked from
        )
        self.places: dict[int, int] = {}  # process id: place of the worker, from 0
        self.stopping = False
        self.lifeline, self.held = os.pipe()  # never written to: workers read its end when this process ends

    def run(self) -> None:
        """Fork all workers, and return when the last has ended; raises CannotServe if one could not start."""
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, self.stop)
        if self.on_hangup:
            signal.signal(signal.SIGHUP, self.hang_up)
        for place in range(self.count):
            self.start(place)
        failed = False
        while self.places:
            process, status = os.wait()
            place = self.places.pop(process)
            self.on_gone(process)
            failed = failed or os.waitstatus_to_exitcode(status) == FAILED
            if failed:
                self.stop()
            elif not self.stopping:
                log.warning("process %d is gone: starting another", process)
                self.start(place)
        if failed:
            raise CannotServe("A server process could not start; the log says why.")

    def start(self, place: int) -> None:
        """Fork the worker of this place."""
        process = os.fork()
        if process:
            self.places[process] = place
            return
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, signal.SIG_DFL)
        if on_hangup := self.on_hangup:
            signal.signal(signal.SIGHUP, lambda *_: on_hangup())
        os.close(self.held)
        threading.Thread(target=self.end_with_supervisor, daemon=True).start()
        code = 1
        try:
            self.serve(place)
            code = 0
        except Exception as error:  # logged by the worker: the supervisor needs only its exit code
            log.debug("process failed: %s", error)
            code = FAILED
        finally:
            os._exit(code)

    def end_with_supervisor(self) -> None:
        """In a worker: wait until the supervisor has ended, however it died, and stop this worker too."""
        os.read(self.lifeline, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    def stop(self, _: int = 0, __: FrameType | None = None) -> None:
        """Send SIGTERM to all workers, which drain and end."""
        self.stopping = True
        for process in self.places:
            os.kill(process, signal.SIGTERM)

    def hang_up(self, _: int, __: FrameType | None) -> None:
        """Handle SIGHUP in this process and in all workers."""
        if self.on_hangup:
            self.on_hangup()
        for process in self.places:
            os.kill(process, signal.SIGHUP)
