"""Which device networks run on: a GPU if one works, else the CPU, and how many cores there are."""

import logging
import os
from collections.abc import Callable

import numpy as np

from sameface.model.errors import DeviceUnavailable
from sameface.model.runtime.graph_rewrites import identity_graph
from sameface.model.runtime.providers import CUDA, list_providers
from sameface.model.runtime.session import open_session

log = logging.getLogger("sameface.session")


def select_device(requested: str, find_cuda_fault: Callable[[], str | None] | None = None) -> str:
    """`cpu` or `gpu` for a requested `cpu`, `gpu` or `auto`.

    A GPU that was requested and does not work is refused; under `auto` the log says why there is none.
    """
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
    if CUDA not in list_providers():
        return "this ONNX Runtime was built without CUDA (install the extra gpu: make EXTRA=gpu)"
    try:
        session = open_session(identity_graph(), "gpu")
        session.run(None, {"x": np.zeros(1, np.float32)})
    except Exception as error:  # ONNX Runtime raises its own unexported types
        return f"CUDA failed: {error}"
    if session.provider != CUDA:
        return "the CUDA provider did not load (driver, CUDA or cuDNN missing)"
    return None


def available_cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
