"""Thresholds: the caller's own, or the one at which a calibration promises the target error rate."""

import math
from dataclasses import dataclass

from sameface.model.decision.calibration import Calibration
from sameface.model.decision.calibration_files import Calibrations
from sameface.model.decision.rates import round_up, write_rate
from sameface.model.errors import FmrNotSupported, FpirNotSupported, InvalidRule, NotCalibrated, SamefaceError

TARGET_FMR = 1e-4
TARGET_FPIR = 1e-2
LOWEST_RATE = 1e-12  # lower ones cannot be shared out over a large gallery in floating point


@dataclass(frozen=True, slots=True)
class Rule:
    """What to decide by: a threshold, a target error rate, or with neither the server's own rate."""

    threshold: float | None = None
    rate: float | None = None
    extrapolate: bool = False  # allow rates lower than the data supports

    def __post_init__(self) -> None:
        if self.threshold is not None and not -1 <= self.threshold <= 1:
            raise InvalidRule(f"A threshold is a similarity from -1 to 1, not {self.threshold}.")
        if self.rate is not None and not LOWEST_RATE <= self.rate < 1:
            raise InvalidRule(f"A target rate lies between {LOWEST_RATE:g} and 1, not at {self.rate}.")
        if self.threshold is not None and self.rate is not None:
            raise InvalidRule("Give a threshold or a target rate, not both.")


AT_OWN_RATE = Rule()
EXTRAPOLATING = Rule(extrapolate=True)  # where a refusal would help nobody: a gallery may outgrow the data


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether a similarity reaches the threshold, and how rare it is among strangers."""

    same_person: bool
    estimated_fmr: float | None = None  # the error rate if the threshold stood at this similarity
    estimated_fmr_is_bound: bool = False  # the rate is lower than that, by more than the data can tell
    extrapolated: bool = False  # the threshold, or the estimate, rests on the tail beyond the data


@dataclass(frozen=True, slots=True)
class Threshold:
    """The similarity from which two faces count as one person's, and the evidence behind it."""

    value: float
    target: float | None = None  # the error rate that it was chosen for
    calibration: Calibration | None = None
    comparisons: float = 1.0  # single comparisons that one decision is worth
    extrapolate: bool = False
    extrapolated: bool = False  # the target is lower than the calibration's data supports
    calibration_name: str | None = None

    def judge(self, similarity: float) -> Judgement:
        """The judgement of one similarity, without an estimate if there is no calibration.

        The estimate is never lower than the data supports, unless the caller allowed to extrapolate.
        """
        same_person = similarity >= self.value
        if not self.calibration:
            return Judgement(same_person)
        fmr, lowest = self.calibration.curve.fmr_at(similarity), self.calibration.lowest_fmr
        return Judgement(
            same_person,
            estimated_fmr=add_up(fmr if self.extrapolate else max(fmr, lowest), self.comparisons),
            estimated_fmr_is_bound=fmr < lowest and not self.extrapolate,
            extrapolated=self.extrapolate and (self.extrapolated or fmr < lowest),
        )


def add_up(fmr: float, comparisons: float) -> float:
    """The rate of at least one false match in `comparisons` comparisons, taken as independent.

    Strangers differ in how many people they resemble, so that false matches gather on a few of them and the
    true rate is lower, never higher (Jensen's inequality).
    """
    return -math.expm1(comparisons * math.log1p(-min(fmr, 1 - 1e-12)))


def share_out(rate: float, comparisons: float) -> float:
    """The inverse of `add_up`: the false match rate of each comparison at which they add up to `rate`."""
    return -math.expm1(math.log1p(-rate) / comparisons)


class Thresholds:
    """The thresholds of a bundle, for a pair of faces and for a gallery of any size."""

    def __init__(
        self, calibrations: Calibrations, target_fmr: float = TARGET_FMR, target_fpir: float = TARGET_FPIR
    ) -> None:
        self.calibrations = calibrations
        self.contract = calibrations.bundle.contract
        self.target_fmr = target_fmr
        self.target_fpir = target_fpir

    def refuse_own_rate(self) -> None:
        """Raise if the default FMR is not supported: once at the start, instead of in every request."""
        if not self.calibrations.default:
            return
        try:
            self.for_pair(AT_OWN_RATE)
        except FmrNotSupported as refusal:
            name, lowest = self.calibrations.default.name, refusal.facts["lowest_supported"]
            least = write_rate(round_up(lowest))
            raise FmrNotSupported(
                f"{name} supports rates from {least} up, and {write_rate(self.target_fmr)} was asked for."
                f" Start with `--target-fmr {least}`, or calibrate on more people.",
                lowest_supported=lowest,
                calibration=name,
            ) from None

    def for_pair(self, rule: Rule, *, calibration: str | None = None, faces: int = 1) -> Threshold:
        """The threshold to compare a face with one person, who has `faces` faces."""
        chosen = self.find_calibration(calibration)
        comparisons = chosen.fusions["max"].of(faces) if chosen else 1.0
        return self.choose(rule, self.target_fmr, chosen, comparisons, FmrNotSupported)

    def for_gallery(
        self, rule: Rule, *, people: int, faces: int, fusion: str, calibration: str | None = None
    ) -> Threshold:
        """The threshold to search for a face among `people` people, who have `faces` faces in all."""
        chosen = self.find_calibration(calibration)
        people = max(1, people)
        comparisons = people * chosen.fusions[fusion].of(max(1.0, faces / people)) if chosen else 1.0
        return self.choose(rule, self.target_fpir, chosen, comparisons, FpirNotSupported)

    def find_calibration(self, name: str | None) -> Calibration | None:
        """The calibration `name`; without a name the default one, or None."""
        return self.calibrations.get(name) if name else self.calibrations.default

    def choose(
        self,
        rule: Rule,
        default: float,
        calibration: Calibration | None,
        comparisons: float,
        refusal: type[SamefaceError],
    ) -> Threshold:
        """The threshold for `rule`, or by the rate `default` if the rule names none.

        Raises `refusal` if the calibration does not support the rate over that many `comparisons`.
        """
        name = calibration.name if calibration else None
        if rule.threshold is not None:
            return Threshold(
                rule.threshold, None, calibration, comparisons, rule.extrapolate, calibration_name=name
            )
        if calibration is None:
            return Threshold(self.find_published(rule))
        rate = rule.rate or default
        fmr = share_out(rate, comparisons)
        extrapolated = fmr < calibration.lowest_fmr * (1 - 1e-9)
        if extrapolated and not rule.extrapolate:
            lowest = add_up(calibration.lowest_fmr, comparisons)
            raise refusal(
                f"{calibration.name} supports rates from {write_rate(round_up(lowest))} up here;"
                f" {write_rate(rate)} was asked for."
                " Ask for more, allow `extrapolate`, or calibrate on more people.",
                lowest_supported=lowest,
                calibration=calibration.name,
            )
        value = calibration.curve.similarity_at(fmr)
        return Threshold(value, rate, calibration, comparisons, rule.extrapolate, extrapolated, name)

    def find_published(self, rule: Rule) -> float:
        """The threshold that the bundle's contract publishes, for a bundle without a calibration."""
        name = self.contract.name
        if rule.rate is not None:
            raise NotCalibrated(f"{name} has no calibration: send a threshold instead of a target rate.")
        if self.contract.published_threshold is None:
            raise NotCalibrated(f"{name} has neither a calibration nor a published threshold: send one.")
        return self.contract.published_threshold
