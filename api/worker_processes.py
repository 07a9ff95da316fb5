"""Several server processes on one socket: started together, replaced when they die, stopped together."""

import logging
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

from sameface.model.errors import CannotServe

log = logging.getLogger("sameface.supervisor")

FAILED = 2  # the exit code of a process that cannot serve: another one could not either


class Supervisor:
    """Keeps so many processes running until it is told to stop.

    They are forked before any network is open, so that nothing is shared but the socket; the gallery's change
    sequence keeps them in step.
    """

    def __init__(self, count: int, serve: Callable[[int], None], on_gone: Callable[[int], None]) -> None:
        self.count = count
        self.serve = serve
        self.on_gone = on_gone  # called with the id of a process that has ended
        self.places: dict[int, int] = {}  # process id: which of them it is
        self.stopping = False
        self.lifeline, self.held = os.pipe()  # nothing is ever written: it ends when this process does

    def run(self) -> None:
        """Start them all and return when the last one is gone."""
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, self.stop)
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
        """Fork one server process."""
        process = os.fork()
        if process:
            self.places[process] = place
            return
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, signal.SIG_DFL)
        os.close(self.held)
        threading.Thread(target=self.end_with_supervisor, daemon=True).start()
        code = 1
        try:
            self.serve(place)
            code = 0
        except Exception as error:  # said by the process itself; here only its exit code counts
            log.debug("process failed: %s", error)
            code = FAILED
        finally:
            os._exit(code)

    def end_with_supervisor(self) -> None:
        """In a server process: nobody may go on alone, whatever killed the others."""
        os.read(self.lifeline, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    def stop(self, _: int = 0, __: FrameType | None = None) -> None:
        """Ask all of them to drain and end."""
        self.stopping = True
        for process in self.places:
            os.kill(process, signal.SIGTERM)
