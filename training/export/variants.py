"""Smaller variants of an exported network, and the accuracy that decides whether one is kept."""

import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from PIL import Image

from sameface.model.bundles.bundle import Bundle
from sameface.model.errors import BundleRefused
from sameface.model.faces import Pixels
from sameface.model.measurement.errors import PairsRefused
from sameface.model.measurement.lfw_pairs import Pair, PairAccuracy, measure_accuracy, read_pairs
from sameface.model.observer import ignore_progress
from sameface.model.photo.embed import open_embedder
from sameface.model.photo.image import list_photo_files
from sameface.model.runtime import graph_rewrites
from sameface.training.data.face_set import decode_crop
from sameface.training.export.int8_search import round_network

CALIBRATION_CROPS = 200  # the ranges of activations settle with fewer
MIN_COSINE = 0.99  # of embeddings in int8 to exact ones: layers that turn them more stay exact


@dataclass(frozen=True, slots=True)
class Trial:
    """The pairs on which bundles are measured, and the loss of accuracy that a variant may have."""

    pairs: list[Pair]
    calibration: list[Path]  # crops whose activations set the ranges of int8
    max_loss: float = 0.005


def plan_trial(pairs_file: Path, images: Path, calibration: Path | None, max_loss: float) -> Trial:
    """A trial on the pairs of a file; int8 is calibrated on `calibration`, or else on the pairs' crops."""
    pairs = read_pairs(pairs_file, images)
    shown = {crop for pair in pairs for crop in (pair.probe, pair.reference) if crop.is_file()}
    if not shown:
        raise PairsRefused(
            f"{images} has none of the crops that {pairs_file} lists."
            f" `sameface pairs {images}` makes a list of those that are there."
        )
    crops = list_crops(calibration) if calibration else sorted(shown)
    return Trial(pairs, spread(crops, CALIBRATION_CROPS), max_loss)


def list_crops(folder: Path) -> list[Path]:
    """The images in a folder and its subfolders."""
    crops = list_photo_files(folder)
    if not crops:
        raise BundleRefused(f"{folder} has no crops to calibrate with.")
    return crops


def spread(crops: list[Path], most: int) -> list[Path]:
    """At most `most` crops, evenly spaced in the list, because neighbours show one person."""
    places = np.linspace(0, len(crops) - 1, min(most, len(crops))).round().astype(int)
    return [crops[place] for place in places]


def read_crop(path: Path) -> Pixels | None:
    """Decode the crop at `path`; None if it cannot be read."""
    try:
        return decode_crop(path.read_bytes())
    except (OSError, ValueError, Image.DecompressionBombError):
        return None


def try_bundle(bundle: Bundle, pairs: Sequence[Pair], cache: Path) -> PairAccuracy:
    """The accuracy of a bundle on pairs of crops, embedded as by the server."""
    embeddings = {}
    with closing(open_embedder(bundle, "cpu", cache)) as embedder:
        for path in {path for pair in pairs for path in (pair.probe, pair.reference)}:
            crop = read_crop(path)
            if crop is not None:
                embeddings[path] = embedder.embed([crop])[0].values
    similarities = [
        float(embeddings[pair.probe] @ embeddings[pair.reference])
        if pair.probe in embeddings and pair.reference in embeddings
        else float("nan")
        for pair in pairs
    ]
    return measure_accuracy(similarities, pairs)


def record_accuracy(measured: PairAccuracy) -> dict[str, Any]:
    """The accuracy as the contract stores it."""
    return {
        "accuracy": measured.accuracy,
        "pairs": measured.pairs,
        "missing_pairs": measured.missing,
        "threshold": measured.threshold,
    }


def to_fp16(bundle: Bundle, target: Path, _trial: Trial) -> None:
    """Convert the bundle's graph to half precision."""
    with quietly():
        target.write_bytes(graph_rewrites.to_fp16(bundle.path.read_bytes()))


def quantise(bundle: Bundle, target: Path, trial: Trial) -> None:
    """Convert weights and activations to eight bits; the accuracy of the trial says if that is kept."""
    crops = [crop for path in trial.calibration if (crop := read_crop(path)) is not None]
    if not crops:
        raise BundleRefused("None of the crops to calibrate with can be read.")
    rounded = round_network(bundle, np.stack(crops), MIN_COSINE, ignore_progress)
    onnx.save(rounded.network, target)


VARIANTS: dict[str, Callable[[Bundle, Path, Trial], None]] = {"fp16": to_fp16, "int8": quantise}


@contextmanager
def quietly() -> Iterator[None]:
    """Silence the warnings of converters: parity and accuracy measure what they warn of."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
