"""A similarity as the confidence that clients of other servers expect: a number with a meaning of its own.

Their thresholds are 0.5 or 0.8, whatever the recogniser. So the confidence follows the error rate, not the
similarity: it is `at_target` where the threshold of the collection stands, and `NEAR_CERTAIN` where the error
rate is a hundredth of the target. The logarithm of its odds is a straight line in the logarithm of the rate.
"""

import math

from sameface.model.decision.thresholds import Threshold, add_up

NEAR_CERTAIN = 0.99
RARER = 100.0  # how much rarer than the target a false match is there
SMALLEST_RATE = 1e-300


def measure_confidence(threshold: Threshold, similarity: float, at_target: float) -> float:
    """The confidence from 0 to 1 of a similarity, `at_target` at the threshold; it rises with similarity.

    Without a calibration it is made of two straight lines, which say no more than which side it is on.
    """
    calibration = threshold.calibration
    if calibration is None or threshold.target is None:
        return follow_lines(similarity, threshold.value, at_target)
    rate = add_up(calibration.curve.fmr_at(similarity), threshold.comparisons)
    return to_confidence(threshold.target / max(rate, SMALLEST_RATE), at_target)


def to_confidence(rarer: float, at_target: float) -> float:
    """The confidence where a false match is `rarer` times rarer than the target."""
    start, end = log_odds(at_target), log_odds(NEAR_CERTAIN)
    return 1 / (1 + math.exp(-(start + (end - start) * math.log(rarer) / math.log(RARER))))


def to_rarity(confidence: float, at_target: float) -> float:
    """The inverse of `to_confidence`: how many times rarer than the target a false match is there."""
    start, end = log_odds(at_target), log_odds(NEAR_CERTAIN)
    return math.exp((log_odds(confidence) - start) / (end - start) * math.log(RARER))


def log_odds(confidence: float) -> float:
    """The logarithm of the odds of a confidence between 0 and 1."""
    return math.log(confidence / (1 - confidence))


def follow_lines(similarity: float, threshold: float, at_target: float) -> float:
    """From 0 at similarity -1 straight to `at_target` at the threshold, and on to 1 at similarity 1."""
    if similarity < threshold:
        return at_target * (similarity + 1) / (threshold + 1)
    return at_target + (1 - at_target) * (similarity - threshold) / max(1 - threshold, 1e-6)
