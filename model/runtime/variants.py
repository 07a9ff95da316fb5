"""The ways to run a network that race on a machine: proved against the published file, then timed."""

import time
from dataclasses import dataclass

import numpy as np
import onnx

from sameface.model.faces import Floats
from sameface.model.runtime import graph_rewrites as graph
from sameface.model.runtime import openvino as openvino_session
from sameface.model.runtime.session import Session, open_session

WORTHWHILE = 0.95  # a variant must take less than this share of the time
ROUNDS = 12


@dataclass(frozen=True, slots=True)
class Variant:
    """A way to run a network, and how far its outputs are from the published file's."""

    network: bytes
    engine: str = "onnxruntime"
    precision: str = "exact"
    split_prelu: bool = False
    difference: float = 0.0

    def open(self, device: str = "cpu") -> Session:
        """A session that runs the network this way."""
        return open_session(self.network, device, self.engine, self.precision)


def list_rivals(network: onnx.ModelProto, device: str) -> list[Variant]:
    """Other ways to run a graph on a CPU: on OpenVINO, or without PRelu, which ONNX Runtime runs slowly."""
    if device != "cpu":
        return []
    freed = bytes(network.SerializeToString())
    rivals = []
    if graph.has_prelu(network):
        graph.split_prelu(network)
        rivals.append(Variant(bytes(network.SerializeToString()), split_prelu=True))
    if openvino_session.find_version():
        rivals.append(Variant(freed, "openvino"))  # its own PRelu is fast
    return rivals


def compare_outputs(variant: Variant, batches: list[Floats], expected: list[Floats]) -> float:
    """The largest difference from `expected`, relative to the largest value; infinite if it does not run."""
    try:
        session = variant.open()
        name = session.input_name
        answers = [session.run(None, {name: batch}) for batch in batches]
    except Exception:  # a graph that cannot be rewritten this way
        return float("inf")
    outputs = [np.concatenate(parts) for parts in zip(*answers, strict=True)]
    if [output.shape for output in outputs] != [right.shape for right in expected]:
        return float("inf")
    differences = [np.abs(found - right).max() for found, right in zip(outputs, expected, strict=True)]
    sizes = [np.abs(right).max() for right in expected]
    return max(
        float(difference / max(size, 1e-9)) for difference, size in zip(differences, sizes, strict=True)
    )


def time_ratio(candidate: Variant, baseline: Variant, sample: Floats) -> float:
    """The candidate's fastest time as a share of the baseline's."""
    fastest, other = time_sessions([candidate.open(), baseline.open()], sample)
    return fastest / other


def time_sessions(sessions: list[Session], sample: Floats) -> list[float]:
    """The fastest time of each session in seconds; they take turns, so that noise hits all of them."""
    best = [float("inf")] * len(sessions)
    for _ in range(ROUNDS):
        for which, session in enumerate(sessions):
            start = time.perf_counter()
            session.run(None, {session.input_name: sample})
            best[which] = min(best[which], time.perf_counter() - start)
    return best
