"""Whether a calibration keeps its promise on test data: the asked rate against the measured one."""

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from sameface.model.decision.calibration import Calibration, ErrorRates, Rate
from sameface.model.decision.rates import round_up, write_rate
from sameface.model.measurement.fit_calibration import RULE_OF_30
from sameface.model.measurement.intervals import LEVEL, measure_rates
from sameface.model.measurement.photo_sketch import estimate_overlap
from sameface.model.measurement.scores import LabelledEmbeddings, ListedPairs, Scores

TOLERANCE = 2  # times the asked rate: where it holds exactly, the interval lies on both sides of it
LARGE_OVERLAP = 0.1  # share of the photos: with more, a calibration is compared with itself

Answer = Literal["holds", "does_not_hold", "cannot_say"]


@dataclass(frozen=True, slots=True)
class CalibratedRates:
    """The rates measured at the threshold of the bundle's calibration, and whether it holds here."""

    calibration: str
    target_fmr: float
    extrapolated: bool  # the threshold is for a lower rate than the calibration's own data supports
    supported: bool  # thirty false matches or more are expected of these pairs
    rates: ErrorRates
    verdict: Answer
    confidence: float
    sentence: str
    overlap: float | None  # the share of these photos that the calibration was made on; None if unknown
    warning: str | None  # of that overlap


def judge_calibration(
    calibration: Calibration,
    target_fmr: float,
    pairs: LabelledEmbeddings | ListedPairs,
    impostor: Scores,
    digests: Collection[str],
) -> CalibratedRates:
    """Measure at the calibration's threshold for `target_fmr`, and say whether the rate is kept."""
    [rates] = measure_rates(pairs, [calibration.curve.similarity_at(target_fmr)])
    evidence = calibration.evidence
    overlap = estimate_overlap(calibration.sketch, evidence.faces + evidence.failed, digests)
    verdict = decide(rates.fmr, target_fmr, impostor.pairs, overlap)
    extrapolated = target_fmr < calibration.lowest_fmr * (1 - 1e-9)
    sentence = explain(verdict, calibration.name, target_fmr, rates.fmr, impostor.pairs, overlap)
    if verdict != "cannot_say":
        sentence += f" {rates.fnmr.value:.2%} of the genuine pairs do not match."
    if extrapolated:
        lowest = write_rate(round_up(calibration.lowest_fmr))
        sentence += f" The threshold is extrapolated: its own data supports rates from {lowest} up."
    return CalibratedRates(
        calibration.name,
        target_fmr,
        extrapolated,
        is_supported(target_fmr, impostor.pairs),
        rates,
        verdict,
        LEVEL / 100,
        sentence,
        overlap,
        warn(calibration.name, overlap),
    )


def warn(name: str, overlap: float | None) -> str | None:
    """A warning that the calibration was made on the photos that it is tried on, if it was."""
    if not overlap:
        return None
    return (
        f"{name} was made on {write_share(overlap)} of these very photos, so they flatter it: evaluate on"
        " people that it has not seen."
    )


def is_supported(fmr: float, pairs: int) -> bool:
    """Whether at `fmr` thirty false matches or more are expected of this many impostor pairs."""
    return fmr * pairs >= RULE_OF_30 * (1 - 1e-9)


def is_seen(fmr: float, pairs: int) -> bool:
    """Whether at least one false match is expected: below that, every rate has the same threshold."""
    return fmr * pairs >= 1 - 1e-9


def decide(fmr: Rate, target: float, pairs: int, overlap: float | None) -> Answer:
    """`holds` if the interval is below the target, or around it and narrow; never on its own photos."""
    if fmr.low > target:
        return "does_not_hold"
    near = is_supported(target, pairs) and fmr.high <= TOLERANCE * target
    if (fmr.high <= target or near) and (overlap or 0.0) < LARGE_OVERLAP:
        return "holds"
    return "cannot_say"


def explain(verdict: Answer, name: str, target: float, fmr: Rate, pairs: int, overlap: float | None) -> str:
    """The verdict in sentences, with what was seen and what to do next."""
    asked = f"at the threshold for FMR {write_rate(target)}"
    if verdict == "holds":
        strict = " It is stricter here than was asked for." if fmr.high < target / TOLERANCE else ""
        return f"{name} holds here: {asked}, {describe_seen(fmr, pairs)}.{strict}"
    if verdict == "does_not_hold":
        return (
            f"{name} does not hold here: {asked}, {describe_seen(fmr, pairs)}, at least"
            f" {fmr.low / target:.2g} times what was asked for. Calibrate on photos like these."
        )
    if (overlap or 0.0) >= LARGE_OVERLAP:
        why = "it was made on them"
    elif not is_supported(target, pairs):
        expected, need = target * pairs, math.ceil(RULE_OF_30 / target)
        rate = write_rate(round_up(min(1.0, RULE_OF_30 / pairs)))
        why = (
            f"{asked}, {pairs:,} impostor pairs let {expected:.2g} false matches be expected, and it takes"
            f" {RULE_OF_30}; {describe_seen(fmr, pairs)}. Take {need:,} impostor pairs, of more people, or"
            f" look at --target-fmr {rate}"
        )
    else:
        why = f"{asked}, {describe_seen(fmr, pairs)}, on both sides of what was asked for. Take more people"
    return f"These photos cannot say whether {name} holds: {why}."


def describe_seen(fmr: Rate, pairs: int) -> str:
    """The measured rate with its interval; without any false match, the bound of the rule of three."""
    if not fmr.value:
        bound = f"below {write_rate(fmr.high)} with {LEVEL} % confidence"
        return f"none of {pairs:,} impostor pairs matches, so the rate is {bound}"
    interval = f"{write_rate(fmr.low)} to {write_rate(fmr.high)}"
    return f"{write_rate(fmr.value)} of the impostor pairs match ({LEVEL} % interval {interval})"


def write_share(share: float) -> str:
    """A share in per cent, never rounded to none or all."""
    return f"{min(99, max(1, round(100 * share)))} %" if share < 1 else "all"
