"""A published graph to its fastest equivalent on this machine: rewritten, proved equal, timed, cached."""

import json
import logging
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from sameface.model.bundles.bundle import DETECTOR_PARTS, DETECTOR_STRIDES, Bundle
from sameface.model.errors import BundleRefused, FolderRefused
from sameface.model.faces import Floats
from sameface.model.files import hash_file, make_private_folder, write_atomically
from sameface.model.runtime import graph_rewrites as graph
from sameface.model.runtime import openvino as openvino_session
from sameface.model.runtime.batch_size import measure_batch_size
from sameface.model.runtime.session import describe_engines, open_session

log = logging.getLogger("sameface.session")

PREPARATION = 4  # incremented when a rewrite changes, so that graphs cached before are not used
PARITY = 1e-4  # largest difference, relative to the largest output
WORTHWHILE = 0.95  # a rewrite must take less than this share of the time


def prepare_graph(bundle: Bundle, device: str, cache: Path) -> tuple[Path, dict[str, Any]]:
    """The file of the fastest equivalent graph on `device`, and its report; made once, then cached."""
    stem = f"{bundle.identity[:16]}-{device}-{describe_engines()}-{PREPARATION}"
    prepared, report_file = cache / f"{stem}.onnx", cache / f"{stem}.json"
    if report := read_report(prepared, report_file):
        return prepared, report
    network, report = choose_variant(bundle, device)
    tried = device == "gpu" and report["dynamic_batch"]  # on a CPU no batch beats a session per core
    report["batch_size"] = find_batch_size(network, bundle, device) if tried else 1
    try:
        make_private_folder(cache)
        write_atomically(prepared, network)
        report["sha256"] = hash_file(prepared)
        write_atomically(report_file, json.dumps(report, indent=2).encode())
    except OSError as error:
        raise FolderRefused(
            f"Prepared graphs cannot be kept in {cache}: {error.strerror}. Name another folder with --data."
        ) from error
    engine, difference = report["engine"], report["difference"]
    log.info("prepared %s for %s: differs by %.1e at most", bundle.contract.name, engine, difference)
    return prepared, report


def find_batch_size(network: bytes, bundle: Bundle, device: str) -> int:
    """The batch size at which `device` is fastest per crop."""
    session = open_session(network, device)

    def run(batch: Floats) -> object:
        return session.run(None, {session.input_name: batch})

    return measure_batch_size(run, random_input(bundle))


def read_report(prepared: Path, report_file: Path) -> dict[str, Any] | None:
    """The report of a cached graph; None if the graph is missing or does not have the report's hash."""
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


@dataclass(frozen=True, slots=True)
class Variant:
    """A way to run a network, and how far its outputs are from the published file's."""

    network: bytes
    engine: str = "onnxruntime"
    split_prelu: bool = False
    difference: float = 0.0


def choose_variant(bundle: Bundle, device: str) -> tuple[bytes, dict[str, Any]]:
    """Free the graph's shapes, then return the fastest variant that computes the same, and its report."""
    samples = random_input(bundle)
    expected = run_published(bundle, samples)
    network = onnx.load(bundle.path)
    graph.strip_initialiser_inputs(network)
    graph.free_shapes(network, {0: "batch"} if is_recogniser(bundle) else {2: "height", 3: "width"})
    batches = [samples] if is_recogniser(bundle) else list(samples[:, np.newaxis])

    def prove(variant: Variant) -> Variant:
        return replace(variant, difference=compare_outputs(variant, batches, expected))

    best = prove(Variant(bytes(network.SerializeToString())))
    if not best.difference <= PARITY:
        refuse_fixed_shapes(bundle, best.difference)
        return bundle.path.read_bytes(), describe(Variant(b""), dynamic_batch=False)
    for rival in map(prove, list_rivals(network, device)):
        if rival.difference <= PARITY and time_ratio(rival, best, samples[:1]) < WORTHWHILE:
            best = rival
    return best.network, describe(best, dynamic_batch=is_recogniser(bundle))


def describe(variant: Variant, *, dynamic_batch: bool) -> dict[str, Any]:
    """The report of a variant, kept beside the cached graph."""
    return {
        "engine": variant.engine,
        "dynamic_batch": dynamic_batch,
        "split_prelu": variant.split_prelu,
        "difference": variant.difference,
    }


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


def refuse_fixed_shapes(bundle: Bundle, difference: float) -> None:
    """Raise for a detector, which must take photos of any size; a recogniser can run one crop at a time."""
    if not is_recogniser(bundle):
        raise BundleRefused(f"{bundle.path} cannot take images of any size.")
    log.warning("%s keeps its fixed shapes: freed, it differs by %.2g", bundle.contract.name, difference)


def is_recogniser(bundle: Bundle) -> bool:
    """Whether the network takes batches of one size; a detector takes one image of any size."""
    return bundle.contract.kind == "recogniser"


def random_input(bundle: Bundle) -> Floats:
    """Three images of noise, preprocessed: zeros would hide differences and slow operators."""
    width, height = bundle.contract.input_size
    noise = np.random.default_rng(0).integers(0, 256, (3, height, width, 3), np.uint8)
    return bundle.preprocess(noise)


def run_published(bundle: Bundle, samples: Floats) -> list[Floats]:
    """The outputs of the published file for each sample; raises if the file does not fit its contract."""
    try:
        session = open_session(bundle.path, "cpu")
        name = session.input_name
        answers = [session.run(None, {name: sample[np.newaxis]}) for sample in samples]
    except Exception as error:  # ONNX Runtime raises its own unexported types
        raise BundleRefused(f"{bundle.path} does not run on the input of its contract: {error}") from error
    outputs = [np.concatenate(parts) for parts in zip(*answers, strict=True)]
    if not all(np.isfinite(output).all() for output in outputs):
        raise BundleRefused(f"{bundle.path} yields numbers that are not finite.")
    refuse_wrong_outputs(bundle, dict(zip(session.output_names, outputs, strict=True)))
    return outputs


def refuse_wrong_outputs(bundle: Bundle, outputs: dict[str, Floats]) -> None:
    """Raise unless a recogniser yields its embedding first, or a detector each part for every stride."""
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


def compare_outputs(variant: Variant, batches: list[Floats], expected: list[Floats]) -> float:
    """The largest difference from `expected`, relative to the largest value; infinite if it does not run."""
    try:
        session = open_session(variant.network, "cpu", variant.engine)
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


def time_ratio(candidate: Variant, baseline: Variant, sample: Floats, rounds: int = 12) -> float:
    """The candidate's fastest time as a share of the baseline's; they take turns, so that noise hits both."""
    sessions = [open_session(variant.network, "cpu", variant.engine) for variant in (candidate, baseline)]
    best = [float("inf"), float("inf")]
    for _ in range(rounds):
        for which, session in enumerate(sessions):
            start = time.perf_counter()
            session.run(None, {session.input_name: sample})
            best[which] = min(best[which], time.perf_counter() - start)
    return best[0] / best[1]
