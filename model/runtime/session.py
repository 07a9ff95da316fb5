"""Sessions: open networks that answer one forward pass at a time, whichever engine runs them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import onnxruntime

from sameface.model.faces import Floats
from sameface.model.runtime import openvino

CUDA, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"
PROVIDERS = {"cpu": [CPU], "gpu": [CUDA, CPU]}


class Session(Protocol):
    """An open network with one input; every call keeps one core busy, because callers are the parallelism."""

    input_name: str
    output_names: list[str]
    provider: str  # what it runs on, as /health/ready says it

    def run(self, outputs: Sequence[str] | None, feed: Mapping[str, Floats]) -> list[Floats]:
        """One forward pass: the outputs of these names, or all of them."""


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


def open_session(network: bytes | Path, device: str, engine: str = "onnxruntime") -> Session:
    """A session for the network on `device`, run by the engine of this name."""
    if engine == "openvino":
        return openvino.OpenVinoSession(network)
    return OnnxRuntimeSession(network, device)


def list_providers() -> list[str]:
    """The execution providers of the installed ONNX Runtime, the libraries of CUDA loaded if it has them."""
    providers: list[str] = onnxruntime.get_available_providers()
    if CUDA in providers:
        onnxruntime.preload_dlls()
    return providers


def describe_engines() -> str:
    """The engines and their versions, as part of a cached graph's name: others may prefer another graph."""
    beside = openvino.find_version()
    return f"ort{onnxruntime.__version__}" + (f"-ov{beside}" if beside else "")
