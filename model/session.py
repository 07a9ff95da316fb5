"""Opens ONNX sessions: which device, which threads, and a graph prepared for it."""

import json
import logging
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import onnx
import onnxruntime

from model import graph
from model.batch_size import measure_batch_size
from model.bundle import DETECTOR_PARTS, DETECTOR_STRIDES, Bundle
from model.errors import BundleRefused, DeviceUnavailable
from model.faces import Floats
from model.files import hash_file, write_atomically

log = logging.getLogger("sameface.session")

CUDA, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"
PROVIDERS = {"cpu": [CPU], "gpu": [CUDA, CPU]}
PREPARATION = 3  # counts up when a rewrite changes, so that cached graphs of another are not taken
PARITY = 1e-4  # largest difference, relative to the largest output
WORTHWHILE = 0.95  # a rewrite must take less than this share of the time


class Runtime:
    """The open sessions of one network: what they run on, and how many images each takes at once."""

    def __init__(self, sessions: Sequence[Any], device: str, batch_size: int) -> None:
        self.device = device
        self.provider: str = sessions[0].get_providers()[0]
        self.batch_size = batch_size
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


def open_session(network: bytes | Path, device: str) -> Any:
    """A session whose every call runs on the calling thread: callers are the parallelism."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.enable_mem_pattern = False  # it keeps a plan for every input size it ever saw
    options.log_severity_level = 3
    source = network if isinstance(network, bytes) else str(network)
    return onnxruntime.InferenceSession(source, options, providers=PROVIDERS[device])


def open_runtime(bundle: Bundle, device: str, cache: Path, threads: int = 1) -> Runtime:
    """The bundle's network, prepared for the device, with a session per thread on a CPU and one on a GPU."""
    prepared, report = prepare_graph(bundle, device, cache)
    sessions = [open_session(prepared, device) for _ in range(threads if device == "cpu" else 1)]
    runtime = Runtime(sessions, device, report["batch_size"])
    if runtime.provider != PROVIDERS[device][0]:
        raise DeviceUnavailable(
            f"{bundle.contract.name} got {runtime.provider} although a {device} was there."
        )
    return runtime


def prepare_graph(bundle: Bundle, device: str, cache: Path) -> tuple[Path, dict[str, Any]]:
    """The fastest equal of the published graph for this device, from the cache if it was made before."""
    stem = f"{bundle.identity[:16]}-{device}-ort{onnxruntime.__version__}-{PREPARATION}"
    prepared, report_file = cache / f"{stem}.onnx", cache / f"{stem}.json"
    if report := read_report(prepared, report_file):
        return prepared, report
    cache.mkdir(parents=True, exist_ok=True)
    network, report = choose_variant(bundle, device)
    tried = device == "gpu" and report["dynamic_batch"]  # on a CPU no batch beats a session per core
    report["batch_size"] = find_batch_size(network, bundle, device) if tried else 1
    write_atomically(prepared, network)
    report["sha256"] = hash_file(prepared)
    write_atomically(report_file, json.dumps(report, indent=2).encode())
    log.info("prepared %s: %s", bundle.contract.name, report)
    return prepared, report


def find_batch_size(network: bytes, bundle: Bundle, device: str) -> int:
    """How many crops the device likes to take at once."""
    session = open_session(network, device)
    name = session.get_inputs()[0].name
    return measure_batch_size(lambda batch: session.run(None, {name: batch}), random_input(bundle))


def read_report(prepared: Path, report_file: Path) -> dict[str, Any] | None:
    """What was done to a cached graph, or None if there is none or it is not what was written."""
    if not prepared.exists() or not report_file.exists():
        return None
    try:
        report: dict[str, Any] = json.loads(report_file.read_text("utf-8"))
    except ValueError:
        report = {}
    if report.get("sha256") == hash_file(prepared):
        return report
    log.warning("the cached graph %s is damaged: preparing it again", prepared)
    return None


def choose_variant(bundle: Bundle, device: str) -> tuple[bytes, dict[str, Any]]:
    """Rewrite step by step; a step stays if the graph still computes the same and is not slower."""
    samples = random_input(bundle)
    expected = run_published(bundle, samples)
    network = onnx.load(bundle.path)
    chosen, report = (
        bundle.path.read_bytes(),
        {"dynamic_batch": False, "split_prelu": False, "difference": 0.0},
    )

    graph.strip_initialiser_inputs(network)
    graph.free_shapes(network, {0: "batch"} if is_recogniser(bundle) else {2: "height", 3: "width"})
    freed = bytes(network.SerializeToString())
    batches = [samples] if is_recogniser(bundle) else list(samples[:, np.newaxis])
    difference = compare_outputs(freed, batches, expected)
    if not difference <= PARITY and not is_recogniser(bundle):
        raise BundleRefused(f"{bundle.path} cannot take images of any size.")
    if not difference <= PARITY:
        log.warning("%s keeps its fixed shapes: freed, it differs by %.2g", bundle.contract.name, difference)
        return chosen, report
    chosen, report = (
        freed,
        {"dynamic_batch": is_recogniser(bundle), "split_prelu": False, "difference": difference},
    )

    if device == "cpu" and graph.has_prelu(network):
        graph.split_prelu(network)
        split = bytes(network.SerializeToString())
        difference = compare_outputs(split, batches, expected)
        if difference <= PARITY and time_ratio(split, freed, samples[:1]) < WORTHWHILE:
            chosen, report = split, report | {"split_prelu": True, "difference": difference}
    return chosen, report


def is_recogniser(bundle: Bundle) -> bool:
    """Recognisers take batches of one size, detectors one image of any size."""
    return bundle.contract.kind == "recogniser"


def random_input(bundle: Bundle) -> Floats:
    """A few images of noise, preprocessed: on zeros, neither a difference nor a slow operator shows."""
    width, height = bundle.contract.input_size
    noise = np.random.default_rng(0).integers(0, 256, (3, height, width, 3), np.uint8)
    return bundle.preprocess(noise)


def run_published(bundle: Bundle, samples: Floats) -> list[Floats]:
    """What the published file answers, sample by sample; a file that does not fit its contract is refused."""
    try:
        session = open_session(bundle.path, "cpu")
        name = session.get_inputs()[0].name
        answers = [session.run(None, {name: sample[np.newaxis]}) for sample in samples]
    except Exception as error:  # ONNX Runtime raises its own unexported types
        raise BundleRefused(f"{bundle.path} does not run on the input of its contract: {error}") from error
    outputs = [np.concatenate(parts) for parts in zip(*answers, strict=True)]
    if not all(np.isfinite(output).all() for output in outputs):
        raise BundleRefused(f"{bundle.path} yields numbers that are not finite.")
    names = [output.name for output in session.get_outputs()]
    refuse_wrong_outputs(bundle, dict(zip(names, outputs, strict=True)))
    return outputs


def refuse_wrong_outputs(bundle: Bundle, outputs: dict[str, Floats]) -> None:
    """A recogniser yields its embedding first, a detector each part for every stride."""
    shapes = {name: output.shape[1:] for name, output in outputs.items()}
    if is_recogniser(bundle):
        found, dimension = next(iter(shapes.values())), bundle.contract.dimension
        if found != (dimension,):
            raise BundleRefused(f"{bundle.path} yields {found}; its contract says {dimension} numbers.")
        return
    width, height = bundle.contract.input_size
    for stride in DETECTOR_STRIDES:
        for part, numbers in DETECTOR_PARTS.items():
            expected = ((width // stride) * (height // stride), numbers)
            if shapes.get(f"{part}_{stride}") != expected:
                raise BundleRefused(f"{bundle.path} must yield {part}_{stride} of {expected} per image.")


def compare_outputs(network: bytes, batches: list[Floats], expected: list[Floats]) -> float:
    """The largest difference from the expected outputs, relative to the largest of them."""
    try:
        session = open_session(network, "cpu")
        name = session.get_inputs()[0].name
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


def time_ratio(candidate: bytes, baseline: bytes, sample: Floats, rounds: int = 12) -> float:
    """The candidate's time as a share of the baseline's, taking turns so that noise hits both."""
    sessions = [open_session(network, "cpu") for network in (candidate, baseline)]
    best = [float("inf"), float("inf")]
    for _ in range(rounds):
        for which, session in enumerate(sessions):
            start = time.perf_counter()
            session.run(None, {session.get_inputs()[0].name: sample})
            best[which] = min(best[which], time.perf_counter() - start)
    return best[0] / best[1]


def available_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
