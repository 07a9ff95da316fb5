"""Opens sessions, the things that run a network: on which device, by which engine, on one thread."""

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from sameface.model.errors import DeviceUnavailable
from sameface.model.runtime import graph_rewrites as graph
from sameface.model.runtime import openvino as openvino_session

log = logging.getLogger("sameface.session")

CUDA, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"
PROVIDERS = {"cpu": [CPU], "gpu": [CUDA, CPU]}


def select_device(requested: str, find_cuda_fault: Callable[[], str | None] | None = None) -> str:
    """`cpu` or `gpu`; a required GPU that does not work is refused, an absent one under `auto` is said."""
    if requested == "cpu":
        return "cpu"
    fault = (find_cuda_fault or cuda_fault)()
    if fault is None:
        return "gpu"
    if requested == "gpu":
        raise DeviceUnavailable(f"The device must be a GPU, but {fault}.")
    log.info("running on the CPU: %s", fault)
    return "cpu"


def cuda_fault() -> str | None:
    """Why CUDA cannot be used, or None if a network ran on it."""
    if CUDA not in onnxruntime.get_available_providers():
        return "this ONNX Runtime was built without CUDA (install sameface[gpu])"
    onnxruntime.preload_dlls()
    try:
        session = open_session(graph.identity_graph(), "gpu")
        session.run(None, {"x": np.zeros(1, np.float32)})
    except Exception as error:  # ONNX Runtime raises its own unexported types
        return f"CUDA failed: {error}"
    if session.get_providers()[0] != CUDA:
        return "the CUDA provider did not load (driver, CUDA or cuDNN missing)"
    return None


def open_session(network: bytes | Path, device: str, engine: str = "onnxruntime") -> Any:
    """A session whose every call keeps one core busy: callers are the parallelism."""
    if engine == "openvino":
        return openvino_session.OpenVinoSession(network)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.enable_mem_pattern = False  # it keeps a plan for every input size it ever saw
    options.log_severity_level = 3
    source = network if isinstance(network, bytes) else str(network)
    return onnxruntime.InferenceSession(source, options, providers=PROVIDERS[device])


def describe_engines() -> str:
    """What there is to run networks with, and its versions: another choice may be best with others."""
    beside = openvino_session.find_version()
    return f"ort{onnxruntime.__version__}" + (f"-ov{beside}" if beside else "")


def available_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
