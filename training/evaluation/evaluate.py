"""The error rates of a bundle on test data, with intervals, measured through the server's own pipeline."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sameface.model.decision.calibration import ErrorRates, GroupRates, Rate
from sameface.model.decision.similarity import STEPS
from sameface.model.errors import LabelsRefused
from sameface.model.measurement.embed_photos import choose_embed
from sameface.model.measurement.fit_calibration import RULE_OF_30
from sameface.model.measurement.groups import measure_groups, read_groups
from sameface.model.measurement.intervals import measure_mean_rate, measure_rates, measure_share
from sameface.model.measurement.labelled_photos import LabelledFaces
from sameface.model.measurement.lfw_pairs import decide_by_folds
from sameface.model.measurement.scores import LabelledEmbeddings, ListedPairs, Scores, score_all_pairs
from sameface.model.observer import Progress, ignore_progress
from sameface.model.pipeline import Pipeline
from sameface.training.evaluation.data_sets import EvaluationData, ListedFaces
from sameface.training.evaluation.open_set import Identification, measure_identification

DECADES = tuple(10.0**-decade for decade in range(1, 7))
CURVE = tuple(10 ** (-step / 20) for step in range(121))  # FMRs from 1 to 1e-6
BINS = 100  # of a histogram, from -1 to 1


@dataclass(frozen=True, slots=True)
class Accuracy:
    """The share of pairs decided right, each fold at the best threshold of the other folds."""

    rate: Rate
    threshold: float
    missing: int  # pairs in which a photo has no face, counted as wrong


@dataclass(frozen=True, slots=True)
class DecadeRates:
    """The error rates at the threshold for a target FMR."""

    target_fmr: float
    rates: ErrorRates
    supported: bool  # thirty false matches or more are expected


@dataclass(frozen=True, slots=True)
class CalibratedRates:
    """The target FMR of the bundle's calibration, and the rates measured at its threshold."""

    calibration: str
    target_fmr: float
    rates: ErrorRates


@dataclass(frozen=True, slots=True)
class Curves:
    """Points of the DET curve, and histograms of the similarities."""

    fmrs: tuple[float, ...]
    fnmrs: tuple[float, ...]
    genuine: tuple[float, ...]  # share of pairs per bin
    impostor: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The measurements of one bundle on one data set."""

    bundle: str
    identity: str
    size_bytes: int
    data: str
    kind: str
    photos: int
    failed: int  # photos without a face to embed
    genuine_pairs: int
    impostor_pairs: int
    drawn_over: str
    accuracy: Accuracy | None
    eer: Rate
    eer_threshold: float
    decades: tuple[DecadeRates, ...]
    calibrated: CalibratedRates | None
    identification: Identification | None
    groups: tuple[GroupRates, ...]
    curves: Curves


def evaluate(
    pipeline: Pipeline,
    data: EvaluationData,
    *,
    groups: Path | None = None,
    target_fmr: float | None = None,
    progress: Progress = ignore_progress,
) -> Evaluation:
    """Embed `data` as the server would, and measure; `groups` is a CSV of `identity,group`."""
    embed = choose_embed(pipeline, aligned=data.aligned)
    material = data.read(embed, pipeline.options.threads, progress)
    pairs = material.embedded if isinstance(material, LabelledFaces) else material.pairs
    genuine, impostor = score_all_pairs(pairs) if isinstance(pairs, LabelledEmbeddings) else pairs.score()
    if not genuine.pairs or not impostor.pairs:
        kind = "impostor" if genuine.pairs else "genuine"
        raise LabelsRefused(f"{data.name} has no {kind} pairs that could be scored.")
    bundle = pipeline.embedder.bundle
    threshold = find_equal(genuine, impostor)
    return Evaluation(
        bundle=bundle.contract.name,
        identity=bundle.identity,
        size_bytes=bundle.path.stat().st_size,
        data=data.name,
        kind=data.kind,
        photos=material.photos,
        failed=len(material.failed),
        genuine_pairs=genuine.pairs,
        impostor_pairs=impostor.pairs,
        drawn_over=material.drawn_over if isinstance(material, ListedFaces) else "people",
        accuracy=measure_fold_accuracy(pairs),
        eer=measure_mean_rate(pairs, threshold),
        eer_threshold=threshold,
        decades=measure_decades(pairs, impostor),
        calibrated=measure_calibrated(pipeline, pairs, target_fmr),
        identification=measure_identification(pairs) if isinstance(pairs, LabelledEmbeddings) else None,
        groups=compare_groups_of(material, groups, choose_threshold(pipeline, impostor, target_fmr)),
        curves=draw_curves(genuine, impostor),
    )


def find_equal(genuine: Scores, impostor: Scores) -> float:
    """The threshold at which FMR and FNMR are closest to each other."""
    fmrs = impostor.from_here_up / impostor.pairs
    fnmrs = 1 - genuine.from_here_up / genuine.pairs
    return round(int(np.argmin(np.abs(fmrs - fnmrs))) / STEPS - 1, 6)


def measure_fold_accuracy(pairs: LabelledEmbeddings | ListedPairs) -> Accuracy | None:
    """The accuracy of a list with folds, else None: a threshold found on the same pairs would flatter it."""
    if isinstance(pairs, LabelledEmbeddings) or len(np.unique(pairs.folds)) < 2:
        return None
    wrong, threshold = decide_by_folds(pairs.similarities, pairs.same, pairs.folds)
    missing = int(np.isnan(pairs.similarities).sum())
    return Accuracy(measure_share(pairs, ~wrong), threshold, missing)


def measure_decades(pairs: LabelledEmbeddings | ListedPairs, impostor: Scores) -> tuple[DecadeRates, ...]:
    """FNMR at FMR 1e-1 to 1e-6, at thresholds found on the same pairs."""
    rows = measure_rates(pairs, [impostor.find_threshold(fmr) for fmr in DECADES])
    return tuple(
        DecadeRates(fmr, rates, fmr * impostor.pairs >= RULE_OF_30 * (1 - 1e-9))
        for fmr, rates in zip(DECADES, rows, strict=True)
    )


def measure_calibrated(
    pipeline: Pipeline, pairs: LabelledEmbeddings | ListedPairs, target_fmr: float | None
) -> CalibratedRates | None:
    """The rates at the threshold of the bundle's calibration, None without a calibration."""
    calibration = pipeline.thresholds.calibrations.default
    if calibration is None:
        return None
    target = target_fmr or pipeline.thresholds.target_fmr
    [rates] = measure_rates(pairs, [calibration.curve.similarity_at(target)])
    return CalibratedRates(calibration.name, target, rates)


def choose_threshold(pipeline: Pipeline, impostor: Scores, target_fmr: float | None) -> float:
    """The threshold at which groups are compared: the calibration's, or else found on the impostor pairs."""
    target = target_fmr or pipeline.thresholds.target_fmr
    calibration = pipeline.thresholds.calibrations.default
    return calibration.curve.similarity_at(target) if calibration else impostor.find_threshold(target)


def compare_groups_of(
    material: LabelledFaces | ListedFaces, groups: Path | None, threshold: float
) -> tuple[GroupRates, ...]:
    """The error rates of each group of people; only a labelled folder identifies people."""
    if groups is None:
        return ()
    if not isinstance(material, LabelledFaces):
        raise LabelsRefused("Groups can be compared on a labelled folder, a folder of photos per person.")
    return measure_groups(read_groups(groups.expanduser(), material), threshold)


def draw_curves(genuine: Scores, impostor: Scores) -> Curves:
    """The DET curve and the histograms for the figures."""
    return Curves(
        CURVE,
        tuple(genuine.share_below(impostor.find_threshold(fmr)) for fmr in CURVE),
        bin_scores(genuine),
        bin_scores(impostor),
    )


def bin_scores(scores: Scores) -> tuple[float, ...]:
    """The share of pairs in each bin of the histogram."""
    edges = np.linspace(0, 2 * STEPS, BINS + 1).astype(int)[:-1]
    return tuple((np.add.reduceat(scores.counts, edges) / scores.pairs).tolist())
