"""Runs a network on OpenVINO, where that is installed and measures faster."""

import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from sameface.model.errors import PrecisionUnavailable
from sameface.model.faces import Floats

ONE_THREAD = {
    "INFERENCE_NUM_THREADS": 1,
    "NUM_STREAMS": 1,
    "PERFORMANCE_HINT": "LATENCY",
    "ENABLE_CPU_PINNING": False,  # the threads of several sessions would all be tied to the first core
}
REPORTER = "openvino_telemetry"  # tells Google Analytics of each import, unless it is missing
HINTS = {"exact": "f32", "bf16": "bf16"}  # given always: by default outputs would depend on the machine


def find_version() -> str | None:
    """The version of OpenVINO, or None if the extra `openvino` is not installed."""
    try:
        return version("openvino")
    except PackageNotFoundError:
        return None


def open_core() -> Any:
    """OpenVINO's `Core`. The module is imported late, as it is optional, and must not report that."""
    silenced = sys.modules.setdefault(REPORTER, None) is None  # type: ignore[arg-type]
    try:
        import openvino
    finally:
        if silenced:
            sys.modules.pop(REPORTER, None)
    return openvino.Core()


def list_capabilities() -> list[str]:
    """What OpenVINO can compute in on this CPU, such as FP32, INT8 and BF16."""
    return list(open_core().get_property("CPU", "OPTIMIZATION_CAPABILITIES"))


class OpenVinoSession:
    """A network on OpenVINO, in the precision `exact` or `bf16`.

    It is compiled for one image: compiled for any number of them, SFace takes a third longer in bf16.
    """

    provider = "OpenVINO"

    def __init__(self, network: bytes | Path, precision: str = "exact") -> None:
        core, hint = open_core(), HINTS[precision]
        source = network if isinstance(network, bytes) else network.read_bytes()
        options = {**ONE_THREAD, "INFERENCE_PRECISION_HINT": hint}
        model = core.read_model(source, b"")
        shape = model.inputs[0].get_partial_shape()
        shape[0] = 1
        model.reshape(shape)
        compiled = core.compile_model(model, "CPU", options)
        given = compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name()
        if given != hint:  # it computes in f32 without a word where the CPU lacks what it was asked for
            raise PrecisionUnavailable(f"OpenVINO was asked for {hint} and computes in {given}.")
        self._request = compiled.create_infer_request()
        self.input_name: str = compiled.inputs[0].get_any_name()
        self.output_names: list[str] = [output.get_any_name() for output in compiled.outputs]

    def run(self, outputs: Sequence[str] | None, feed: Mapping[str, Floats]) -> list[Floats]:
        """One forward pass per image; the results are copies, which the next pass does not overwrite."""
        names = outputs or self.output_names
        passes = [self._run_one(names, image[np.newaxis]) for image in feed[self.input_name]]
        return [np.concatenate(parts) for parts in zip(*passes, strict=True)]

    def _run_one(self, names: Sequence[str], image: Floats) -> list[Floats]:
        """The outputs for a batch of one image."""
        results = self._request.infer({self.input_name: image}, share_inputs=True)
        return [results[name] for name in names]
