"""A published graph to its fastest equivalent on this machine: rewritten, proved equal, timed, cached."""

import hashlib
import json
import logging
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from sameface.model.bundles.bundle import DETECTOR_PARTS, DETECTOR_STRIDES, Bundle
from sameface.model.errors import BundleRefused, FolderRefused
from sameface.model.faces import Floats
from sameface.model.files import exclusive_lock, hash_file, write_atomically
from sameface.model.runtime import graph_rewrites as graph
from sameface.model.runtime.batch_size import measure_batch_size
from sameface.model.runtime.machine import name_machine
from sameface.model.runtime.precision.choice import EXACT, Offer, Precision, find_offer
from sameface.model.runtime.precision.faces import load_faces, name_faces
from sameface.model.runtime.precision.lower import insist, try_lower
from sameface.model.runtime.precision.proof import LEAST_ROUNDED, Proof, compare_embeddings
from sameface.model.runtime.session import describe_engines, open_session
from sameface.model.runtime.variants import WORTHWHILE, Variant, compare_outputs, list_rivals, time_ratio

log = logging.getLogger("sameface.session")

PREPARATION = 6  # incremented when a rewrite or a session changes, so that older cached graphs are not used
PARITY = 1e-4  # largest difference, relative to the largest output
LOCK = "preparing.lock"  # held by the process that prepares a graph of the cache


def prepare_graph(
    bundle: Bundle, device: str, cache: Path, precision: Precision = EXACT
) -> tuple[Path, dict[str, Any]]:
    """The file of the fastest equivalent graph on `device`, and its report; made once, then cached.

    A recogniser's may be of a lower `precision`, if faces prove that its embeddings stay the same.
    """
    offer = find_offer(precision, device) if is_recogniser(bundle) else None
    stem = f"{name_bundle(bundle)}-{device}-{describe_engines()}-{PREPARATION}"
    if offer and offer.fault is None:
        stem += f"-{precision.name}-{offer.precision}-{name_faces(precision.faces)}"
    prepared, report_file = cache / f"{stem}.onnx", cache / f"{stem}.json"
    report = read_report(prepared, report_file)
    if report is None:
        with preparing_alone(cache):  # another process may have made it meanwhile
            report = read_report(prepared, report_file)
            if report is None:
                if prepared.exists():
                    log.warning("the cached graph %s is damaged: preparing it again", prepared)
                variant, report = make_variant(bundle, device, precision, offer)
                keep(variant.network, report, prepared, report_file)
    with suppress(OSError):  # of a cache that may only be read
        os.utime(report_file)  # `describe_precision` shows the one that was used last
    if offer and offer.fault:  # not kept: after an upgrade of the machine it may be gone
        report["proof"] = Proof(offer.precision, used=False, fault=offer.fault).to_dict()
    return prepared, report


def name_bundle(bundle: Bundle) -> str:
    """How the names of a bundle's prepared graphs begin on this machine."""
    return f"{bundle.identity[:16]}-{name_machine()}"


@contextmanager
def preparing_alone(cache: Path) -> Iterator[None]:
    """Wait until no other process prepares a graph of `cache`: each would disturb the other's timings."""
    with ExitStack() as stack:
        with explaining(cache):
            stack.enter_context(exclusive_lock(cache / LOCK, wait=True))
        yield


@contextmanager
def explaining(cache: Path) -> Iterator[None]:
    """Raise FolderRefused if nothing can be written into `cache`."""
    try:
        yield
    except OSError as error:
        raise FolderRefused(
            f"Prepared graphs cannot be kept in {cache}: {error.strerror}. Name another folder with --data."
        ) from error


def make_variant(
    bundle: Bundle, device: str, precision: Precision, offer: Offer | None
) -> tuple[Variant, dict[str, Any]]:
    """The fastest variant, in the precision of the offer if that is proved, and its report."""
    variant, dynamic_batch = choose_variant(bundle, device)
    proof = None
    if offer and offer.fault is None:
        crops = load_faces(bundle, precision.faces)
        other, proof = try_lower(bundle, device, variant, offer.precision, crops)
        proof = replace(proof, own_faces=precision.faces is not None)
        if precision.name != "auto":
            proof = insist(bundle, proof)
        variant = other if proof.used else variant
        log.info("%s: %s", bundle.contract.name, proof.describe())
    report = describe(variant, proof, dynamic_batch=dynamic_batch)
    tried = device == "gpu" and dynamic_batch  # on a CPU no batch beats a session per core
    report["batch_size"] = find_batch_size(variant.network, bundle, device) if tried else 1
    engine, difference = variant.engine, variant.difference
    log.info("prepared %s for %s: differs by %.1e at most", bundle.contract.name, engine, difference)
    return variant, report


def keep(network: bytes, report: dict[str, Any], prepared: Path, report_file: Path) -> None:
    """Write the prepared graph, then its report with the graph's hash."""
    report["sha256"] = hashlib.sha256(network).hexdigest()
    with explaining(prepared.parent):
        write_atomically(prepared, network)
        write_atomically(report_file, json.dumps(report, indent=2).encode())


def describe_precision(bundle: Bundle, cache: Path) -> dict[str, Any]:
    """The precision and its proof when a bundle was last opened on this machine; None if it never was."""
    reports = sorted(
        cache.glob(f"{name_bundle(bundle)}-*.json"), key=lambda path: path.stat().st_mtime, reverse=True
    )
    read = (read_report(report.with_suffix(".onnx"), report) for report in reports)
    last = next((report for report in read if report), {})
    return {"precision": last.get("precision"), "proof": last.get("proof")}


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
    return report if report.get("sha256") == hash_file(prepared) else None


def choose_variant(bundle: Bundle, device: str) -> tuple[Variant, bool]:
    """Free the graph's shapes, then return the fastest variant that computes the same, and whether it takes
    batches.

    Engines round the numbers of an eight-bit graph differently, so there faces prove that it is the same.
    """
    samples = random_input(bundle)
    expected = run_published(bundle, samples)
    network = onnx.load(bundle.path)
    graph.strip_initialiser_inputs(network)
    graph.free_shapes(network, {0: "batch"} if is_recogniser(bundle) else {2: "height", 3: "width"})
    batches = [samples] if is_recogniser(bundle) else list(samples[:, np.newaxis])

    def prove(variant: Variant) -> Variant:
        return replace(variant, difference=compare_outputs(variant, batches, expected))

    best = freed = prove(Variant(bytes(network.SerializeToString())))
    if not best.difference <= PARITY:
        refuse_fixed_shapes(bundle, best.difference)
        return Variant(bundle.path.read_bytes()), False
    rounding = is_recogniser(bundle) and graph.has_quantizers(network)
    for rival in map(prove, list_rivals(network, device)):
        same = rival.difference <= PARITY
        if rounding and not same and np.isfinite(rival.difference):
            agreement = compare_embeddings(bundle, freed.open(), rival.open(), load_faces(bundle))
            same = agreement.worst_cosine >= LEAST_ROUNDED
        if same and time_ratio(rival, best, samples[:1]) < WORTHWHILE:
            best = rival
    return best, is_recogniser(bundle)


def describe(variant: Variant, proof: Proof | None, *, dynamic_batch: bool) -> dict[str, Any]:
    """The report of a variant, kept beside the cached graph."""
    return {
        "engine": variant.engine,
        "precision": variant.precision,
        "dynamic_batch": dynamic_batch,
        "split_prelu": variant.split_prelu,
        "difference": variant.difference,
        "proof": proof.to_dict() if proof else None,
    }


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
