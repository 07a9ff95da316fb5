"""A pool of the open sessions of a network: each forward pass borrows an idle one."""

from collections.abc import Sequence
from pathlib import Path
from queue import SimpleQueue

from sameface.model.bundles.bundle import Bundle
from sameface.model.errors import DeviceUnavailable
from sameface.model.faces import Floats
from sameface.model.runtime.precision.choice import EXACT, Precision
from sameface.model.runtime.precision.proof import Proof
from sameface.model.runtime.prepare_graph import prepare_graph
from sameface.model.runtime.providers import PROVIDERS
from sameface.model.runtime.session import Session, open_session


class SessionPool:
    """The open sessions of one network, the device they run on, its fastest batch size and its precision."""

    def __init__(
        self,
        sessions: Sequence[Session],
        device: str,
        batch_size: int,
        precision: str = "exact",
        proof: Proof | None = None,
    ) -> None:
        self.device = device
        self.precision = precision
        self.proof = proof
        self.provider = sessions[0].provider
        self.batch_size = batch_size
        self.count = len(sessions)
        self._input = sessions[0].input_name
        self._idle: SimpleQueue[Session] = SimpleQueue()
        for session in sessions:
            self._idle.put(session)

    def run(self, pixels: Floats, outputs: Sequence[str] | None = None) -> list[Floats]:
        """One forward pass on the calling thread, by an idle session; returns the outputs named, or all."""
        session = self._idle.get()
        try:
            return session.run(outputs, {self._input: pixels})
        finally:
            self._idle.put(session)


def open_sessions(
    bundle: Bundle, device: str, cache: Path, threads: int = 1, precision: Precision = EXACT
) -> SessionPool:
    """The bundle's network, prepared for the device: a session per thread on a CPU, one session on a GPU."""
    prepared, report = prepare_graph(bundle, device, cache, precision)
    engine, lower = report["engine"], report["precision"]
    sessions = [
        open_session(prepared, device, engine, lower) for _ in range(threads if device == "cpu" else 1)
    ]
    proof = Proof(**report["proof"]) if report["proof"] else None
    pool = SessionPool(sessions, device, report["batch_size"], lower, proof)
    if device == "gpu" and pool.provider != PROVIDERS[device][0]:
        raise DeviceUnavailable(f"{bundle.contract.name} got {pool.provider} although a {device} was there.")
    return pool
