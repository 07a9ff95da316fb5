"""From similarities to error rates and back: which threshold keeps false matches as rare as was asked for."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sameface.model.errors import CalibrationRefused, LabelsRefused
from sameface.model.measurement.face_counts import Worth
from sameface.model.measurement.intervals import ErrorRates, measure_rates
from sameface.model.measurement.scores import STEPS, LabelledEmbeddings, Scores

RULE_OF_30 = 30  # false matches that are expected where a rate counts as supported
KNOTS_PER_DECADE = 20
TAIL = 10  # the tail is fitted to so many times the false matches of the lowest supported rate


@dataclass(frozen=True, slots=True)
class Curve:
    """The FMR by similarity: measured down to the lowest supported rate, an exponential tail beyond it.

    Similarities rise and FMRs fall from knot to knot. Between two knots the logarithm of the FMR is a
    straight line; so it is beyond the last, which errs on the side of caution: impostors grow rarer faster.
    """

    similarities: tuple[float, ...]
    fmrs: tuple[float, ...]
    tail_scale: float  # of similarity, over which the tail falls to 1/e

    def __post_init__(self) -> None:
        knots = len(self.similarities)
        rising = knots > 1 and bool(np.all(np.diff(self.similarities) > 0))
        falling = len(self.fmrs) == knots and bool(np.all(np.diff(self.fmrs) < 0)) and self.fmrs[-1] > 0
        if not (rising and falling and self.tail_scale > 0):
            raise CalibrationRefused("The curve of a calibration must fall from similarity to similarity.")

    @property
    def lowest_fmr(self) -> float:
        """The lowest rate that the data supports."""
        return self.fmrs[-1]

    def fmr_at(self, similarity: float) -> float:
        """The false match rate if the threshold stood at this similarity."""
        beyond = max(0.0, similarity - self.similarities[-1])
        measured = float(np.interp(similarity, self.similarities, np.log(self.fmrs)))
        return math.exp(measured - beyond / self.tail_scale)

    def similarity_at(self, fmr: float) -> float:
        """The threshold at which the false match rate is at most this."""
        logs = np.log(self.fmrs)
        beyond = self.tail_scale * max(0.0, math.log(self.fmrs[-1] / fmr))
        similarity = float(np.interp(-math.log(fmr), -logs, self.similarities)) + beyond
        return min(1.0, math.ceil(round(similarity * STEPS, 3)) / STEPS)


def fit_curve(impostors: Sequence[Scores]) -> Curve:
    """The curve of these scores; of several groups of impostors, at every rate that of the worst one."""
    scarcest = min(group.pairs for group in impostors)
    if scarcest <= RULE_OF_30 * TAIL:
        raise LabelsRefused(
            f"There are {scarcest:,} impostor pairs; it takes more than {RULE_OF_30 * TAIL}, of more people."
        )
    lowest = RULE_OF_30 / scarcest
    steps = math.ceil(-math.log10(lowest) * KNOTS_PER_DECADE)
    levels = [*(10 ** (-step / KNOTS_PER_DECADE) for step in range(steps)), lowest]
    # Where many pairs are equally similar, several rates share a threshold: the lowest of them holds there.
    knots = {max(group.find_threshold(level) for group in impostors): level for level in levels}
    tail = max(group.mean_excess(group.find_threshold(lowest * TAIL)) for group in impostors)
    return Curve(tuple(knots), tuple(knots.values()), max(tail, 1 / STEPS))


@dataclass(frozen=True, slots=True)
class GroupRates:
    """How a group of people fares at a threshold; its impostors are pairs within the group."""

    group: str
    people: int
    impostor_pairs: int
    genuine_pairs: int
    rates: ErrorRates


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a calibration was measured on."""

    data: str
    people: int
    faces: int
    failed: int  # photos without a face to embed
    genuine_pairs: int
    impostor_pairs: int
    by_worst_group: bool = False


@dataclass(frozen=True, slots=True)
class Calibration:
    """The error rates of one bundle on one set of people, and what they were measured on."""

    name: str  # of the bundle, a slash, its own
    identity: str  # of the bundle
    created_at: str
    evidence: Evidence
    curve: Curve
    fusions: Mapping[str, Worth]
    decades: tuple[ErrorRates, ...]  # at FMR 1e-1, 1e-2 ... as far as the data supports it
    groups: tuple[GroupRates, ...] = ()

    @property
    def lowest_fmr(self) -> float:
        """The lowest rate that the data supports."""
        return self.curve.lowest_fmr

    def describe(self) -> dict[str, Any]:
        """What matters to somebody who chooses one."""
        return {
            "name": self.name,
            "identity": self.identity,
            "created_at": self.created_at,
            "evidence": self.evidence,
            "lowest_fmr": self.lowest_fmr,
            "decades": self.decades,
            "groups": self.groups,
        }


def measure_decades(faces: LabelledEmbeddings, curve: Curve) -> tuple[ErrorRates, ...]:
    """The error rates, with their intervals, at the thresholds of all supported decades of FMR."""
    supported = math.floor(-math.log10(curve.lowest_fmr) + 1e-9)
    thresholds = [curve.similarity_at(10.0**-decade) for decade in range(1, supported + 1)]
    return tuple(measure_rates(faces, thresholds)) if thresholds else ()


def need_more(lowest_fmr: float, people: int) -> tuple[float, int, int]:
    """The next decade of FMR, and how many impostor pairs and people more would support it.

    Of groups, the one with fewest pairs sets what is supported: then it needs so many pairs, and all of them
    so many people, more.
    """
    decade = 10.0 ** (math.ceil(math.log10(lowest_fmr) - 1e-9) - 1)
    pairs = math.ceil(RULE_OF_30 / decade) - round(RULE_OF_30 / lowest_fmr)
    return decade, pairs, math.ceil(people * math.sqrt(lowest_fmr / decade)) - people
