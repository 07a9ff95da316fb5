"""Sessions: open networks that answer one forward pass at a time, whichever engine runs them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import onnxruntime

from sameface.model.faces import Floats
from sameface.model.runtime import openvino
from sameface.model.runtime.providers import PROVIDERS


class Session(Protocol):
    """An open network with one input; a call uses one core, because callers run in parallel."""

    input_name: str
    output_names: list[str]
    provider: str  # the execution provider, as /health/ready shows it

    def run(self, outputs: Sequence[str] | None, feed: Mapping[str, Floats]) -> list[Floats]:
        """One forward pass on the inputs in `feed`; returns the outputs named in `outputs`, or all."""


class OnnxRuntimeSession:
    """A network on ONNX Runtime."""

    def __init__(self, network: bytes | Path, device: str) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.enable_mem_pattern = False  # it would keep a plan for every input size it ever saw
        options.log_severity_level = 3
        source = network if isinstance(network, bytes) else str(network)
        session: Any = onnxruntime.InferenceSession(source, options, providers=PROVIDERS[device])
        self.run = session.run
        self.input_name: str = session.get_inputs()[0].name
        self.output_names: list[str] = [output.name for output in session.get_outputs()]
        self.provider: str = session.get_providers()[0]


def open_session(
    network: bytes | Path, device: str, engine: str = "onnxruntime", precision: str = "exact"
) -> Session:
    """A session for the network on `device`, run by `engine`; a graph of fp16 has that precision itself."""
    if engine == "openvino":
        return openvino.OpenVinoSession(network, precision)
    return OnnxRuntimeSession(network, device)


def describe_engines() -> str:
    """The engines and their versions, for a cached graph's name: after an upgrade another graph may win."""
    beside = openvino.find_version()
    return f"ort{onnxruntime.__version__}" + (f"-ov{beside}" if beside else "")
