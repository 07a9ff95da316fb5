"""What counts as the same person: a threshold of the caller's, or one that keeps errors as rare as asked."""

import math
from dataclasses import dataclass

from sameface.model.decision.calibration import Calibration
from sameface.model.decision.calibration_files import Calibrations
from sameface.model.errors import FmrNotSupported, FpirNotSupported, InvalidRule, NotCalibrated, SamefaceError

TARGET_FMR = 1e-4
TARGET_FPIR = 1e-2


@dataclass(frozen=True, slots=True)
class Rule:
    """How a caller wants it decided: by a threshold, by an error rate, or by the server's own rate."""

    threshold: float | None = None
    rate: float | None = None
    extrapolate: bool = False

    def __post_init__(self) -> None:
        if self.threshold is not None and not -1 <= self.threshold <= 1:
            raise InvalidRule(f"A threshold is a similarity from -1 to 1, not {self.threshold}.")
        if self.rate is not None and not 0 < self.rate < 1:
            raise InvalidRule(f"A target rate lies between 0 and 1, not at {self.rate}.")
        if self.threshold is not None and self.rate is not None:
            raise InvalidRule("Give a threshold or a target rate, not both.")


AT_OWN_RATE = Rule()
AT_ANY_SIZE = Rule(extrapolate=True)  # a gallery may outgrow what the data supports


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether a similarity reaches the threshold, and how rare it is among strangers."""

    same_person: bool
    estimated_fmr: float | None  # the error rate if the threshold stood at this similarity
    extrapolated: bool  # the threshold, or the estimate, rests on the tail beyond the data


@dataclass(frozen=True, slots=True)
class Threshold:
    """The similarity from which two faces count as one person's, and the evidence behind it."""

    value: float
    target: float | None = None  # the rate it was chosen for
    calibration: Calibration | None = None
    comparisons: float = 1.0  # with single faces, that one decision is worth
    extrapolate: bool = False
    beyond: bool = False  # the target is lower than the calibration's data supports
    calibration_name: str | None = None

    def judge(self, similarity: float) -> Judgement:
        """The judgement of one similarity."""
        return Judgement(
            similarity >= self.value, self.estimate(similarity), self.is_extrapolated(similarity)
        )

    def estimate(self, similarity: float) -> float | None:
        """The error rate if the threshold stood at this similarity: never lower than the data supports,
        unless the caller allowed to extrapolate."""
        if not self.calibration:
            return None
        fmr = self.calibration.curve.fmr_at(similarity)
        least = 0.0 if self.extrapolate else self.calibration.lowest_fmr
        return add_up(max(fmr, least), self.comparisons)

    def is_extrapolated(self, similarity: float) -> bool:
        """Whether the threshold, or the estimate at this similarity, rests on the tail beyond the data."""
        if not self.calibration or not self.extrapolate:
            return False
        return self.beyond or self.calibration.curve.fmr_at(similarity) < self.calibration.lowest_fmr


def add_up(fmr: float, comparisons: float) -> float:
    """The rate of one false match or more in so many comparisons.

    They are taken as independent. Strangers differ in how many people they resemble, so that false matches
    gather on a few of them and the true rate is lower, never higher (Jensen's inequality).
    """
    return -math.expm1(comparisons * math.log1p(-min(fmr, 1 - 1e-12)))


def share_out(rate: float, comparisons: float) -> float:
    """The false match rate of one comparison that adds up to this rate in so many."""
    return -math.expm1(math.log1p(-rate) / comparisons)


class Thresholds:
    """Thresholds for a bundle, for two photos and for a gallery of any size."""

    def __init__(
        self, calibrations: Calibrations, target_fmr: float = TARGET_FMR, target_fpir: float = TARGET_FPIR
    ) -> None:
        self.calibrations = calibrations
        self.contract = calibrations.bundle.contract
        self.target_fmr = target_fmr
        self.target_fpir = target_fpir

    def refuse_own_rate(self) -> None:
        """Say at once, and not to every caller, that the default rate is not supported."""
        if self.calibrations.default:
            self.for_pair(AT_OWN_RATE)

    def for_pair(self, rule: Rule, *, calibration: str | None = None, faces: int = 1) -> Threshold:
        """To compare a face with one person, who may have several."""
        chosen = self.find_calibration(calibration)
        comparisons = chosen.fusions["max"].of(faces) if chosen else 1.0
        return self.choose(rule, self.target_fmr, chosen, comparisons, FmrNotSupported)

    def for_gallery(
        self, rule: Rule, *, people: int, faces: int, fusion: str, calibration: str | None = None
    ) -> Threshold:
        """To look for a face among so many people of so many faces."""
        chosen = self.find_calibration(calibration)
        people = max(1, people)
        comparisons = people * chosen.fusions[fusion].of(max(1.0, faces / people)) if chosen else 1.0
        return self.choose(rule, self.target_fpir, chosen, comparisons, FpirNotSupported)

    def find_calibration(self, name: str | None) -> Calibration | None:
        """The one that is named, else the default, if there is one."""
        return self.calibrations.get(name) if name else self.calibrations.default

    def choose(
        self,
        rule: Rule,
        default: float,
        calibration: Calibration | None,
        comparisons: float,
        refusal: type[SamefaceError],
    ) -> Threshold:
        """The threshold for a rule, or why there is none."""
        name = calibration.name if calibration else None
        if rule.threshold is not None:
            return Threshold(
                rule.threshold, None, calibration, comparisons, rule.extrapolate, calibration_name=name
            )
        if calibration is None:
            return Threshold(self.find_published(rule))
        rate = rule.rate or default
        fmr = share_out(rate, comparisons)
        beyond = fmr < calibration.lowest_fmr * (1 - 1e-9)
        if beyond and not rule.extrapolate:
            lowest = add_up(calibration.lowest_fmr, comparisons)
            raise refusal(
                f"{calibration.name} supports rates from {lowest:.2g} up here; {rate:g} was asked for."
                " Ask for more, allow `extrapolate`, or calibrate on more people.",
                lowest_supported=lowest,
                calibration=calibration.name,
            )
        value = calibration.curve.similarity_at(fmr)
        return Threshold(value, rate, calibration, comparisons, rule.extrapolate, beyond, name)

    def find_published(self, rule: Rule) -> float:
        """The threshold that came with a bundle that has no calibration."""
        name = self.contract.name
        if rule.rate is not None:
            raise NotCalibrated(f"{name} has no calibration: send a threshold instead of a target rate.")
        if self.contract.published_threshold is None:
            raise NotCalibrated(f"{name} has neither a calibration nor a published threshold: send one.")
        return self.contract.published_threshold
