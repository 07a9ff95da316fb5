"""Two recognisers on the same faces: their false non-match rates at the same FMR, and the difference."""

from collections.abc import Sequence
from dataclasses import dataclass

from sameface.model.decision.calibration import Rate
from sameface.model.faces import Value
from sameface.model.measurement.fit_calibration import RULE_OF_30
from sameface.model.measurement.intervals import Tally, find_interval, tally_errors
from sameface.model.measurement.scores import LabelledEmbeddings, score_all_pairs


@dataclass(frozen=True, slots=True)
class PairedRates(Value):
    """The FNMR of two recognisers, each at its own threshold for `fmr`, and the second minus the first.

    The interval of the difference comes from the same bootstrap draws of people for both.
    """

    fmr: float
    first: Rate
    second: Rate
    difference: Rate

    def loses_at_most(self, share: float) -> bool:
        """Whether the second misses at most `share` more genuine pairs than the first, or may by chance."""
        return min(self.difference.value, self.difference.low) <= share * self.first.value


def compare_rates(
    first: LabelledEmbeddings, second: LabelledEmbeddings, fmrs: Sequence[float]
) -> list[PairedRates]:
    """The rates at each of `fmrs` that has 30 false matches or more; none without genuine pairs."""
    genuine, impostor = score_all_pairs(first)
    supported = [fmr for fmr in fmrs if genuine.pairs and fmr * impostor.pairs >= RULE_OF_30]
    if not supported:
        return []
    tallies = [tally_missed(faces, supported) for faces in (first, second)]
    return [pair_rates(fmr, place, *tallies) for place, fmr in enumerate(supported)]


def tally_missed(faces: LabelledEmbeddings, fmrs: Sequence[float]) -> Tally:
    """The tally of genuine pairs that are missed at the thresholds for `fmrs`."""
    _, impostor = score_all_pairs(faces)
    _, missed = tally_errors(faces, [impostor.find_threshold(fmr) for fmr in fmrs])
    return missed


def pair_rates(fmr: float, place: int, first: Tally, second: Tally) -> PairedRates:
    """The two rates at threshold number `place`, and their difference."""
    rates = first.summarize(place), second.summarize(place)
    drawn = second.draw(place) - first.draw(place)
    difference = Rate(rates[1].value - rates[0].value, *find_interval(drawn))
    return PairedRates(fmr, *rates, difference)
