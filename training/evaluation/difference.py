"""How two bundles differ on the same photos, by a paired bootstrap: both are measured on the same draws."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from sameface.model.measurement.intervals import (
    LEVEL,
    NONE_SEEN,
    Rates,
    Tally,
    find_interval,
    tally_errors,
    tally_share,
)
from sameface.model.measurement.labelled_photos import LabelledFaces
from sameface.model.measurement.lfw_pairs import decide_by_folds
from sameface.model.measurement.scores import LabelledEmbeddings, ListedPairs
from sameface.training.evaluation.data_sets import ListedFaces, Material
from sameface.training.evaluation.evaluate import DECADES, Pairs, find_equal, score
from sameface.training.evaluation.verdict import is_supported


@dataclass(frozen=True, slots=True)
class Difference:
    """An error rate of the second bundle minus that of the first, with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class DecadeDifference:
    """The difference of the FNMRs at one FMR, each bundle at its own threshold for it."""

    target_fmr: float
    fnmr: Difference


@dataclass(frozen=True, slots=True)
class Comparison:
    """The differences between two bundles on the photos that both embedded."""

    first: str
    second: str
    verdict: Literal["better", "worse", "cannot_say"]  # the second, by the equal error rate
    sentence: str
    eer: Difference
    wrong: Difference | None  # the share of a list's pairs decided wrong; None without folds
    decades: tuple[DecadeDifference, ...]  # as far as the pairs support it


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """A rate as measured and in every draw of the bootstrap, and the number of its cases."""

    value: float
    draws: Rates
    cases: int


def compare_bundles(names: Sequence[str], materials: Sequence[Material]) -> Comparison:
    """Compare two bundles by what they make of the same data."""
    pairs = share_photos(materials[0], materials[1])
    fmrs = [fmr for fmr in DECADES if is_supported(fmr, score(pairs[0])[1].pairs)]
    one, other = (draw_rates(each, fmrs) for each in pairs)
    eer, *fnmrs = map(subtract, one, other)
    verdict: Literal["better", "worse", "cannot_say"] = (
        "better" if eer.high < 0 else "worse" if eer.low > 0 else "cannot_say"
    )
    return Comparison(
        names[0],
        names[1],
        verdict,
        explain(names, eer, verdict),
        eer,
        compare_folds(*pairs),
        tuple(map(DecadeDifference, fmrs, fnmrs)),
    )


def share_photos(one: Material, other: Material) -> tuple[Pairs, Pairs]:
    """The pairs of the photos that both bundles embedded, in the same order."""
    if isinstance(one, ListedFaces) and isinstance(other, ListedFaces):
        missing = np.isnan(one.pairs.similarities) | np.isnan(other.pairs.similarities)
        scores = [np.where(missing, np.nan, side.pairs.similarities) for side in (one, other)]
        return replace(one.pairs, similarities=scores[0]), replace(other.pairs, similarities=scores[1])
    assert isinstance(one, LabelledFaces)
    assert isinstance(other, LabelledFaces)
    return keep_files(one, set(other.files)), keep_files(other, set(one.files))


def keep_files(faces: LabelledFaces, files: set[str]) -> LabelledEmbeddings:
    """The embeddings of those faces whose files are in `files`."""
    kept = np.array([file in files for file in faces.files])
    return LabelledEmbeddings(faces.embedded.embeddings[kept], faces.embedded.people[kept])


def draw_rates(pairs: Pairs, fmrs: Sequence[float]) -> list[Drawn]:
    """The equal error rate, and the FNMR at each FMR."""
    genuine, impostor = score(pairs)
    thresholds = [find_equal(genuine, impostor), *map(impostor.find_threshold, fmrs)]
    impostors, genuines = tally_errors(pairs, thresholds)
    fmr, fnmr, *rest = (
        Drawn(tally.errors[place] / tally.cases, tally.draw(place), tally.cases)
        for tally, place in [(impostors, 0), *((genuines, place) for place in range(len(thresholds)))]
    )
    eer = Drawn((fmr.value + fnmr.value) / 2, (fmr.draws + fnmr.draws) / 2, min(fmr.cases, fnmr.cases))
    return [eer, *rest]


def subtract(one: Drawn, other: Drawn) -> Difference:
    """The second rate minus the first, draw by draw; if both have no error, the rule of three bounds it."""
    if not one.value and not other.value:
        bound = min(1.0, NONE_SEEN / one.cases)
        return Difference(0.0, -bound, bound)
    return Difference(float(other.value - one.value), *find_interval(other.draws - one.draws))


def compare_folds(one: Pairs, other: Pairs) -> Difference | None:
    """The difference of the shares of pairs decided wrong, each fold by the best threshold of the others."""
    if isinstance(one, LabelledEmbeddings) or isinstance(other, LabelledEmbeddings):
        return None
    if len(np.unique(one.folds)) < 2:
        return None

    def draw(pairs: ListedPairs) -> Drawn:
        wrong, _ = decide_by_folds(pairs.similarities, pairs.same, pairs.folds)
        tally: Tally = tally_share(pairs, wrong)
        return Drawn(tally.errors[0] / tally.cases, tally.draw(0), tally.cases)

    return subtract(draw(one), draw(other))


def explain(names: Sequence[str], eer: Difference, verdict: str) -> str:
    """The verdict in a sentence, with the difference in percentage points."""
    one, other = names
    if verdict == "cannot_say":
        interval = f"({LEVEL} % interval {100 * eer.low:+.2f} to {100 * eer.high:+.2f})"
        return (
            f"These photos cannot say whether {one} or {other} errs less: the equal error rate of {other}"
            f" differs by {100 * eer.value:+.2f} percentage points {interval}."
        )
    less, more = (other, one) if verdict == "better" else (one, other)
    low, high = sorted((abs(eer.low), abs(eer.high)))
    interval = f"({LEVEL} % interval {100 * low:.2f} to {100 * high:.2f})"
    points = f"{100 * abs(eer.value):.2f} percentage points"
    return f"{less} errs less than {more} here: its equal error rate is lower by {points} {interval}."
