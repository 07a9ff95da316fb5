"""The error rates of a bundle on test data, with intervals, measured through the server's own pipeline."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sameface.model.decision.calibration import Calibration, ErrorRates, GroupRates, Rate
from sameface.model.decision.similarity import STEPS
from sameface.model.measurement.embed_photos import choose_embed
from sameface.model.measurement.errors import LabelsRefused
from sameface.model.measurement.fit_calibration import RULE_OF_30
from sameface.model.measurement.groups import measure_groups, read_groups
from sameface.model.measurement.intervals import measure_mean_rate, measure_rates, measure_share
from sameface.model.measurement.labelled_photos import LabelledFaces
from sameface.model.measurement.lfw_pairs import decide_by_folds
from sameface.model.measurement.scores import LabelledEmbeddings, ListedPairs, Scores, score_all_pairs
from sameface.model.observer import Progress, ignore_progress
from sameface.model.pipeline import Pipeline
from sameface.training.evaluation.data_sets import EvaluationData, ListedFaces, Material
from sameface.training.evaluation.open_set import Identification, measure_identification
from sameface.training.evaluation.verdict import CalibratedRates, is_seen, is_supported, judge_calibration

Pairs = LabelledEmbeddings | ListedPairs

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
    rates: ErrorRates | None  # None if not even one false match is expected: the pairs say nothing
    supported: bool  # thirty false matches or more are expected


@dataclass(frozen=True, slots=True)
class Curves:
    """Points of the DET curve, as far as one false match is expected, and histograms of the similarities."""

    fmrs: tuple[float, ...]
    fnmrs: tuple[float, ...]
    genuine: tuple[float, ...]  # share of pairs per bin
    impostor: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Origin:
    """The hashes of networks and data, which tell this measurement from any other."""

    identity: str  # of the bundle: its contract and its network
    sha256: str  # of the network's file
    size_bytes: int
    detector: str | None  # None for aligned crops, in which no face is looked for
    detector_identity: str | None
    data_sha256: str


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The measurements of one bundle on one data set."""

    bundle: str
    origin: Origin
    data: str
    kind: str
    people: int | None  # None if the data does not say who is who
    photos: int
    failed: int  # photos without a face to embed
    genuine_pairs: int
    impostor_pairs: int
    drawn_over: str
    lowest_fmr: float  # that these pairs support
    target_fmr: float  # at which calibration and groups are looked at
    accuracy: Accuracy | None
    eer: Rate
    eer_threshold: float
    decades: tuple[DecadeRates, ...]
    calibrated: CalibratedRates | None
    identification: Identification | None
    groups: tuple[GroupRates, ...]
    thin_groups: tuple[str, ...]  # of which fewer than thirty false matches are expected
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
    return measure(pipeline, data, embed_data(pipeline, data, progress), groups, target_fmr)


def embed_data(pipeline: Pipeline, data: EvaluationData, progress: Progress = ignore_progress) -> Material:
    """Embed `data` as the server would."""
    return data.read(choose_embed(pipeline, aligned=data.aligned), pipeline.options.threads, progress)


def measure(
    pipeline: Pipeline,
    data: EvaluationData,
    material: Material,
    groups: Path | None = None,
    target_fmr: float | None = None,
) -> Evaluation:
    """Measure what `pipeline` made of `data`."""
    pairs = material.embedded if isinstance(material, LabelledFaces) else material.pairs
    genuine, impostor = score(pairs)
    refuse_one_kind(data.name, genuine, impostor)
    equal, lowest = find_equal(genuine, impostor), min(1.0, RULE_OF_30 / impostor.pairs)
    calibration = pipeline.thresholds.calibrations.default
    supported = calibration.lowest_fmr if calibration else lowest
    target = target_fmr or max(pipeline.thresholds.target_fmr, supported)
    compared = compare_groups_of(material, groups, choose_threshold(calibration, impostor, target))
    return Evaluation(
        bundle=pipeline.embedder.bundle.contract.name,
        origin=describe_origin(pipeline, data, material),
        data=data.name,
        kind=data.kind,
        people=material.people,
        photos=material.photos,
        failed=len(material.failed),
        genuine_pairs=genuine.pairs,
        impostor_pairs=impostor.pairs,
        drawn_over=material.drawn_over if isinstance(material, ListedFaces) else "people",
        lowest_fmr=lowest,
        target_fmr=target,
        accuracy=measure_fold_accuracy(pairs),
        eer=measure_mean_rate(pairs, equal),
        eer_threshold=equal,
        decades=measure_decades(pairs, impostor),
        calibrated=judge_calibration(calibration, target, pairs, impostor, material.digests.values())
        if calibration
        else None,
        identification=measure_identification(pairs) if isinstance(pairs, LabelledEmbeddings) else None,
        groups=compared,
        thin_groups=tuple(each.group for each in compared if not is_supported(target, each.impostor_pairs)),
        curves=draw_curves(genuine, impostor),
    )


def describe_origin(pipeline: Pipeline, data: EvaluationData, material: Material) -> Origin:
    """The hashes of networks and data."""
    bundle, detector = pipeline.embedder.bundle, pipeline.detector.bundle
    return Origin(
        bundle.identity,
        bundle.sha256,
        bundle.path.stat().st_size,
        None if data.aligned else detector.contract.name,
        None if data.aligned else detector.identity,
        data.hash(material),
    )


def score(pairs: Pairs) -> tuple[Scores, Scores]:
    """The histograms of genuine and of impostor pairs."""
    return score_all_pairs(pairs) if isinstance(pairs, LabelledEmbeddings) else pairs.score()


def refuse_one_kind(data: str, genuine: Scores, impostor: Scores) -> None:
    """Raise if there are no genuine or no impostor pairs."""
    if not genuine.pairs or not impostor.pairs:
        kind = "impostor" if genuine.pairs else "genuine"
        raise LabelsRefused(f"{data} has no {kind} pairs that could be scored.")


def find_equal(genuine: Scores, impostor: Scores) -> float:
    """The threshold at which FMR and FNMR are closest to each other."""
    fmrs = impostor.from_here_up / impostor.pairs
    fnmrs = 1 - genuine.from_here_up / genuine.pairs
    return round(int(np.argmin(np.abs(fmrs - fnmrs))) / STEPS - 1, 6)


def measure_fold_accuracy(pairs: Pairs) -> Accuracy | None:
    """The accuracy of a list with folds, else None: a threshold found on the same pairs would flatter it."""
    if isinstance(pairs, LabelledEmbeddings) or len(np.unique(pairs.folds)) < 2:
        return None
    wrong, threshold = decide_by_folds(pairs.similarities, pairs.same, pairs.folds)
    missing = int(np.isnan(pairs.similarities).sum())
    return Accuracy(measure_share(pairs, ~wrong), threshold, missing)


def measure_decades(pairs: Pairs, impostor: Scores) -> tuple[DecadeRates, ...]:
    """FNMR at FMR 1e-1 to 1e-6, at thresholds found on the same pairs, where they say anything."""
    seen = [fmr for fmr in DECADES if is_seen(fmr, impostor.pairs)]
    rows = dict(zip(seen, measure_rates(pairs, [impostor.find_threshold(fmr) for fmr in seen]), strict=True))
    return tuple(DecadeRates(fmr, rows.get(fmr), is_supported(fmr, impostor.pairs)) for fmr in DECADES)


def choose_threshold(calibration: Calibration | None, impostor: Scores, target: float) -> float:
    """The threshold at which groups are compared: the calibration's, or else found on the impostor pairs."""
    return calibration.curve.similarity_at(target) if calibration else impostor.find_threshold(target)


def compare_groups_of(material: Material, groups: Path | None, threshold: float) -> tuple[GroupRates, ...]:
    """The error rates of each group of people; only a labelled folder identifies people."""
    if groups is None:
        return ()
    if not isinstance(material, LabelledFaces):
        raise LabelsRefused("Groups can be compared on a labelled folder, a folder of photos per person.")
    return measure_groups(read_groups(groups.expanduser(), material), threshold)


def draw_curves(genuine: Scores, impostor: Scores) -> Curves:
    """The DET curve and the histograms for the figures."""
    seen = tuple(fmr for fmr in CURVE if is_seen(fmr, impostor.pairs))
    return Curves(
        seen,
        tuple(genuine.share_below(impostor.find_threshold(fmr)) for fmr in seen),
        bin_scores(genuine),
        bin_scores(impostor),
    )


def bin_scores(scores: Scores) -> tuple[float, ...]:
    """The share of pairs in each bin of the histogram."""
    edges = np.linspace(0, 2 * STEPS, BINS + 1).astype(int)[:-1]
    return tuple((np.add.reduceat(scores.counts, edges) / scores.pairs).tolist())
