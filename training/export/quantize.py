"""Makes a bundle of eight bits of a recogniser: rounded, measured beside the exact one, calibrated."""

import dataclasses
import json
import statistics
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnx

from sameface.model.bundles.bundle import CALIBRATIONS, Bundle, load_bundle, rewrite_contract, save_bundle
from sameface.model.decision.thresholds import TARGET_FMR
from sameface.model.errors import BundleRefused
from sameface.model.faces import Floats, Pixels, Value
from sameface.model.measurement.errors import LabelsRefused
from sameface.model.measurement.fit_calibration import calibrate
from sameface.model.measurement.labelled_photos import LabelledFaces
from sameface.model.measurement.paired_rates import PairedRates, compare_rates
from sameface.model.measurement.scores import LabelledEmbeddings
from sameface.model.observer import Progress
from sameface.model.photo.embed import Embedder, open_embedder
from sameface.model.runtime.device import available_cores
from sameface.training.export.bundle_folder import staged
from sameface.training.export.int8_search import Rounded, round_network
from sameface.training.export.model_card import CARD
from sameface.training.export.quantize_card import write_int8_card
from sameface.training.export.quantize_photos import QuantizePhotos

CALIBRATION = "photos"  # the name of the calibration that comes with the bundle
FMRS = (1e-3, 1e-4, 1e-5)
MAX_MISSED = 0.1  # the share by which the FNMR may grow, unless chance explains more
ROUNDS = 15  # of the race
SOUGHT = 0.9  # of the loss that is allowed: on other faces it may be a little more


@dataclass(frozen=True, slots=True)
class Comparison(Value):
    """The bundle of eight bits beside the exact one, on the same faces; speeds are of one thread."""

    faces: int
    people: int  # 0: the photos are not labelled
    layers: int
    exact_layers: int
    mean_cosine: float
    worst_cosine: float
    rates: tuple[PairedRates, ...]
    crops_per_second: float
    exact_crops_per_second: float
    engine: str
    exact_engine: str
    warnings: tuple[str, ...]


def quantize_bundle(
    bundle: Bundle, folder: Path, photos: QuantizePhotos, min_cosine: float, progress: Progress
) -> tuple[Bundle, Comparison]:
    """Write the bundle of eight bits into `folder`; refused if it loses more than it may."""
    sought = 1 - (1 - min_cosine) * SOUGHT
    rounded = round_network(bundle, photos.ranging, sought, progress)
    with staged(folder) as (fresh, cache), ExitStack() as stack:
        name = f"{bundle.contract.name}-int8"
        file = fresh / f"{name}.onnx"
        onnx.save(rounded.network, file)
        source = f"sameface quantize of {bundle.contract.name}, {bundle.identity[:12]}"
        draft = save_bundle(replace(bundle.contract, name=name, calibration=None, source=source), file, fresh)
        exact, small = (
            stack.enter_context(closing(open_embedder(each, "cpu", cache, available_cores())))
            for each in (bundle, draft)
        )
        progress("comparing", 0, len(photos.trial))
        rows = [embed(embedder, photos.trial) for embedder in (exact, small)]
        compared = compare(rows, (exact, small), rounded, photos)
        refuse_loss(compared, min_cosine)
        if photos.people:
            draft, warning = add_calibration(draft, rows[1], photos)
            compared = replace(compared, warnings=(*compared.warnings, *warning))
        parity = {"variant": "int8", "size_bytes": file.stat().st_size, **compared.to_dict()}
        done = rewrite_contract(draft, replace(draft.contract, parity=parity))
        (fresh / CARD).write_text(write_int8_card(done, bundle, min_cosine), "utf-8")
    return load_bundle(folder), compared


def embed(embedder: Embedder, crops: Pixels) -> Floats:
    """The unit embeddings (crops, dimension)."""
    return np.stack([embedding.values for embedding in embedder.embed(list(crops))])


def compare(
    rows: Sequence[Floats], embedders: tuple[Embedder, Embedder], rounded: Rounded, photos: QuantizePhotos
) -> Comparison:
    """The comparison of the exact embeddings with those of eight bits."""
    cosines = np.einsum("ij,ij->i", *rows)
    exact_seconds, seconds = race(embedders, photos.trial[:1])
    labelled = [LabelledEmbeddings(each, photos.owners) for each in rows] if photos.people > 1 else []
    rates = tuple(compare_rates(labelled[0], labelled[1], FMRS)) if labelled else ()
    warnings = list(photos.warnings)
    if seconds > exact_seconds:
        warnings.append(
            f"It is slower than {embedders[0].bundle.contract.name} here: eight bits are fast on OpenVINO"
            " (the extra openvino)."
        )
    if labelled and not rates:
        warnings.append("There are too few people to compare error rates: it takes 30,000 pairs of two.")
    return Comparison(
        faces=len(photos.trial),
        people=photos.people,
        layers=rounded.layers,
        exact_layers=len(rounded.exact),
        mean_cosine=float(cosines.mean()),
        worst_cosine=float(cosines.min()),
        rates=rates,
        crops_per_second=1 / seconds,
        exact_crops_per_second=1 / exact_seconds,
        engine=embedders[1].sessions.provider,
        exact_engine=embedders[0].sessions.provider,
        warnings=tuple(warnings),
    )


def race(embedders: Sequence[Embedder], crops: Pixels) -> list[float]:
    """The median seconds per crop of each embedder on one thread, taking turns."""
    spent: list[list[float]] = [[] for _ in embedders]
    for _ in range(ROUNDS):
        for times, embedder in zip(spent, embedders, strict=True):
            start = time.perf_counter()
            embedder.embed(list(crops))
            times.append(time.perf_counter() - start)
    return [statistics.median(times) for times in spent]


def refuse_loss(compared: Comparison, min_cosine: float) -> None:
    """Raise if embeddings turn too far, or if more genuine pairs are missed than chance explains."""
    if not compared.mean_cosine >= min_cosine:
        raise BundleRefused(
            f"Eight bits lose too much: the mean cosine to the exact embeddings is"
            f" {compared.mean_cosine:.4f} on {compared.faces} other faces, and {min_cosine:g} is asked for."
        )
    for rates in compared.rates:
        if not rates.loses_at_most(MAX_MISSED):
            raise BundleRefused(
                f"Eight bits lose too much: at FMR {rates.fmr:g} the FNMR grows from"
                f" {rates.first.value:.2%} to {rates.second.value:.2%}, by more than a tenth of itself and"
                " more than chance explains. A higher --min-cosine keeps more layers exact."
            )


def add_calibration(draft: Bundle, rows: Floats, photos: QuantizePhotos) -> tuple[Bundle, tuple[str, ...]]:
    """The bundle with a calibration fitted to the labelled faces, or the reason why it has none."""
    files = list(photos.digests)
    labelled = LabelledEmbeddings(rows, photos.owners)
    faces = LabelledFaces([], files, labelled, [], photos.digests)
    try:
        fitted = calibrate(draft, CALIBRATION, faces, data=photos.name, target_fmr=TARGET_FMR)
    except LabelsRefused as error:
        return draft, (f"It has no calibration: {error.detail}",)
    home = draft.folder / CALIBRATIONS
    home.mkdir()
    content = json.dumps(dataclasses.asdict(fitted), indent=2)
    (home / f"{CALIBRATION}.json").write_text(content + "\n", "utf-8")
    return rewrite_contract(draft, replace(draft.contract, calibration=CALIBRATION)), ()
