"""Looks at what networks run on: the machine, the engines, and how fast the two networks are here."""

import platform
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from sameface.model.errors import SamefaceError
from sameface.model.pipeline import Pipeline, PipelineOptions, open_pipeline
from sameface.model.runtime.device import available_cores
from sameface.model.runtime.machine import find_lines, find_processor
from sameface.model.runtime.providers import list_providers
from sameface.model.upkeep.doctor.observation import Observation, write_bytes

ENGINES = {
    "ONNX Runtime": ("onnxruntime", "onnxruntime-gpu"),
    "OpenVINO": ("openvino",),
    "FAISS": ("faiss-cpu", "faiss-gpu-cu12"),
}
MEASURED_SECONDS = 0.7  # per network


def examine_machine() -> Iterator[Observation]:
    """The system, its processor and its memory."""
    system = f"{platform.system()} {platform.release()}, {platform.machine()}"
    yield Observation("machine", "system", system)
    yield Observation("machine", "python", platform.python_version())
    processor = find_processor() or platform.processor() or "unknown"
    yield Observation("machine", "processor", f"{processor}, cores for this process: {available_cores()}")
    found = find_lines(Path("/proc/meminfo"), r"^(?:MemTotal|MemAvailable):\s+(\d+)")
    if len(found) == 2:
        total, free = (write_bytes(1024 * int(each)) for each in found)
        memory = f"{total}, {free} available"
        yield Observation("machine", "memory", memory)


def examine_engines() -> Iterator[Observation]:
    """The engines that are installed, and the execution providers of ONNX Runtime."""
    for name, distributions in ENGINES.items():
        found = [f"{each} {known}" for each in distributions if (known := find_version(each))]
        yield Observation("engines", name, ", ".join(found) or "not installed")
    yield Observation("engines", "providers", ", ".join(list_providers()))


def find_version(distribution: str) -> str | None:
    """The version of an installed package; None if it is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def examine_networks(find_options: Callable[[], PipelineOptions]) -> Iterator[Observation]:
    """The two networks, what they run on, and their milliseconds per photo and per face on one thread."""
    try:
        pipeline = open_pipeline(replace(find_options(), threads=1, gallery=None))
    except (SamefaceError, OSError) as error:
        detail = error.detail if isinstance(error, SamefaceError) else f"{error.filename}: {error.strerror}"
        yield Observation("networks", "both", "cannot be opened", detail)
        return
    with closing(pipeline):
        yield Observation("networks", "device", pipeline.embedder.sessions.device)
        photo, crop = draw_inputs(pipeline)
        for name, bundle, pool, run, unit in (
            ("detector", pipeline.detector.bundle, pipeline.detector.sessions, photo, "photo"),
            ("recognizer", pipeline.embedder.bundle, pipeline.embedder.sessions, crop, "face"),
        ):
            speed = f"{measure(run):.1f} ms per {unit} on one thread"
            way = f"{pool.provider}, {pool.precision}"
            yield Observation("networks", name, f"{bundle.contract.name} by {way}, {speed}")
            if pool.proof:
                yield Observation("networks", "precision", pool.proof.describe())


def draw_inputs(pipeline: Pipeline) -> tuple[Callable[[], object], Callable[[], object]]:
    """One detection and one embedding of grey noise, to be timed."""
    noise = np.random.default_rng(0)
    width, height = pipeline.crop_shape.size
    side = pipeline.options.detection.max_side
    photo = noise.integers(0, 256, (side, side, 3), np.uint8)
    crop = noise.integers(0, 256, (height, width, 3), np.uint8)
    return lambda: pipeline.detector.detect(photo), lambda: pipeline.embedder.embed([crop])


def measure(run: Callable[[], object]) -> float:
    """The median milliseconds of `run`, repeated for a while."""
    spent: list[float] = []
    until = time.perf_counter() + MEASURED_SECONDS
    while not spent or time.perf_counter() < until:
        start = time.perf_counter()
        run()
        spent.append(time.perf_counter() - start)
    return 1000 * statistics.median(spent)
