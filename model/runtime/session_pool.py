"""The open sessions of a network, handed out to whoever runs it."""

from collections.abc import Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from sameface.model.bundles.bundle import Bundle
from sameface.model.errors import DeviceUnavailable
from sameface.model.faces import Floats
from sameface.model.runtime.prepare_graph import prepare_graph
from sameface.model.runtime.session import PROVIDERS, open_session


class Runtime:
    """The open sessions of one network: what they run on, and how many images each takes at once."""

    def __init__(self, sessions: Sequence[Any], device: str, batch_size: int) -> None:
        self.device = device
        self.provider: str = sessions[0].get_providers()[0]
        self.batch_size = batch_size
        self.sessions = len(sessions)
        self._input: str = sessions[0].get_inputs()[0].name
        self._idle: SimpleQueue[Any] = SimpleQueue()
        for session in sessions:
            self._idle.put(session)

    def run(self, pixels: Floats, outputs: Sequence[str] | None = None) -> list[Floats]:
        """One forward pass on the calling thread, on whichever session is idle."""
        session = self._idle.get()
        try:
            results: list[Floats] = session.run(outputs, {self._input: pixels})
        finally:
            self._idle.put(session)
        return results


def open_runtime(bundle: Bundle, device: str, cache: Path, threads: int = 1) -> Runtime:
    """The bundle's network, prepared for the device, with a session per thread on a CPU and one on a GPU."""
    prepared, report = prepare_graph(bundle, device, cache)
    sessions = [
        open_session(prepared, device, report["engine"]) for _ in range(threads if device == "cpu" else 1)
    ]
    runtime = Runtime(sessions, device, report["batch_size"])
    if device == "gpu" and runtime.provider != PROVIDERS[device][0]:
        raise DeviceUnavailable(
            f"{bundle.contract.name} got {runtime.provider} although a {device} was there."
        )
    return runtime
