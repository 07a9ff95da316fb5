"""A calibration: the error rates of a recogniser by similarity, and the data they were measured on."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sameface.model.decision.similarity import STEPS
from sameface.model.errors import CalibrationRefused


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
        """The lowest false match rate that the data supports."""
        return self.fmrs[-1]

    def fmr_at(self, similarity: float) -> float:
        """The false match rate with the threshold at `similarity`."""
        beyond = max(0.0, similarity - self.similarities[-1])
        measured = float(np.interp(similarity, self.similarities, np.log(self.fmrs)))
        return math.exp(measured - beyond / self.tail_scale)

    def similarity_at(self, fmr: float) -> float:
        """The lowest threshold, in steps of the last digit, whose false match rate is at most `fmr`."""
        logs = np.log(self.fmrs)
        beyond = self.tail_scale * max(0.0, math.log(self.fmrs[-1] / fmr))
        similarity = float(np.interp(-math.log(fmr), -logs, self.similarities)) + beyond
        return min(1.0, math.ceil(round(similarity * STEPS, 3)) / STEPS)


@dataclass(frozen=True, slots=True)
class Rate:
    """A measured error rate and its 95 % confidence interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ErrorRates:
    """Both error rates at a threshold."""

    threshold: float
    fmr: Rate
    fnmr: Rate


@dataclass(frozen=True, slots=True)
class SingleComparisons:
    """By a person's number of faces k: how many single comparisons have the false match rate of that person.

    It rises from 1 for a single face, because the best of several faces is more similar to a stranger than
    one. Beyond the measured k it grows in proportion to k, which it can never exceed.
    """

    faces: tuple[float, ...] = (1.0,)
    comparisons: tuple[float, ...] = (1.0,)

    def of(self, faces: float) -> float:
        """The single comparisons that equal one comparison with a person of `faces` faces."""
        beyond = max(1.0, faces / self.faces[-1])
        return float(np.interp(faces, self.faces, self.comparisons)) * beyond


@dataclass(frozen=True, slots=True)
class GroupRates:
    """The error rates of a group of people at a threshold; its impostors are pairs within the group."""

    group: str
    people: int
    impostor_pairs: int
    genuine_pairs: int
    rates: ErrorRates


@dataclass(frozen=True, slots=True)
class Evidence:
    """The data that a calibration was measured on: people, faces and pairs."""

    data: str
    people: int
    faces: int
    failed: int  # photos without a face to embed
    genuine_pairs: int
    impostor_pairs: int
    by_worst_group: bool = False


@dataclass(frozen=True, slots=True)
class Calibration:
    """The error rates of one bundle, and the people that they were measured on."""

    name: str  # the bundle's name, a slash, its own name
    identity: str  # the bundle's
    created_at: str
    evidence: Evidence
    curve: Curve
    fusions: Mapping[str, SingleComparisons]
    decades: tuple[ErrorRates, ...]  # at FMR 1e-1, 1e-2 ... as far as the data supports it
    groups: tuple[GroupRates, ...] = ()
    sketch: str = ""  # of the photos, as `draw_sketch` makes it; calibrations of 0.1.0 have none

    @property
    def lowest_fmr(self) -> float:
        """The lowest false match rate that the data supports."""
        return self.curve.lowest_fmr

    def describe(self) -> dict[str, Any]:
        """The fields that `sameface calibrate` and GET /v1/calibrations show."""
        return {
            "name": self.name,
            "identity": self.identity,
            "created_at": self.created_at,
            "evidence": self.evidence,
            "lowest_fmr": self.lowest_fmr,
            "decades": self.decades,
            "groups": self.groups,
        }
