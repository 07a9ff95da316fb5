"""Runs a network on OpenVINO, where that is installed and measures faster."""

from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from sameface.model.faces import Floats

ONE_THREAD = {
    "INFERENCE_NUM_THREADS": 1,
    "NUM_STREAMS": 1,
    "PERFORMANCE_HINT": "LATENCY",
    "ENABLE_CPU_PINNING": False,  # the threads of several sessions would all be tied to the first core
    "INFERENCE_PRECISION_HINT": "f32",  # the outputs must not depend on the machine
}


def find_version() -> str | None:
    """The version of OpenVINO, or None if the extra `openvino` is not installed."""
    try:
        return version("openvino")
    except PackageNotFoundError:
        return None


class OpenVinoSession:
    """A network on OpenVINO."""

    provider = "OpenVINO"

    def __init__(self, network: bytes | Path) -> None:
        import openvino  # imported here: it is optional, and takes a second

        core = openvino.Core()
        source = network if isinstance(network, bytes) else network.read_bytes()
        compiled = core.compile_model(core.read_model(source, b""), "CPU", ONE_THREAD)
        self._request = compiled.create_infer_request()
        self.input_name: str = compiled.inputs[0].get_any_name()
        self.output_names: list[str] = [output.get_any_name() for output in compiled.outputs]

    def run(self, outputs: Sequence[str] | None, feed: Mapping[str, Floats]) -> list[Floats]:
        """One forward pass; the results are copies, which the next pass does not overwrite."""
        results = self._request.infer(dict(feed), share_inputs=True)
        return [results[name].copy() for name in outputs or self.output_names]
