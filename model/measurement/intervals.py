"""Confidence intervals by bootstrap over people, because pairs that share a person are not independent."""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sameface.model.decision.calibration import ErrorRates, Rate
from sameface.model.faces import Floats
from sameface.model.measurement.scores import (
    Flags,
    LabelledEmbeddings,
    ListedPairs,
    to_step,
    to_steps,
    walk_tiles,
)

Rates: TypeAlias = NDArray[np.float64]
Weights: TypeAlias = NDArray[np.floating]  # of pairs, in every draw of the bootstrap

DRAWS = 400  # of the bootstrap
SEED = 20180109
LEVEL = 95  # per cent
NONE_SEEN = 3.0  # the rule of three: with no error in n cases, the rate is below 3 / n at 95 % confidence
PAIRS_AT_ONCE = 16_384


def summarize(errors: float, cases: float, drawn: Rates) -> Rate:
    """The rate of `errors` in `cases`, with the percentile interval of the rates `drawn` by the bootstrap.

    With no error, or nothing else, all drawn rates are equal, and the rule of three bounds the interval.
    """
    if not cases:
        return Rate(0.0, 0.0, 1.0)
    if not errors:
        return Rate(0.0, 0.0, min(1.0, NONE_SEEN / cases))
    if errors == cases:
        return Rate(1.0, max(0.0, 1 - NONE_SEEN / cases), 1.0)
    return Rate(float(errors / cases), *find_interval(drawn))


def find_interval(drawn: Rates) -> tuple[float, float]:
    """The central `LEVEL` per cent of the rates `drawn` by the bootstrap."""
    edge = (100 - LEVEL) / 2
    low, high = np.nanpercentile(drawn, [edge, 100 - edge])
    return float(low), float(high)


def draw_people(people: int) -> Floats:
    """Bootstrap weights: how often each person is drawn, with replacement, in every draw: (DRAWS, people)."""
    drawing = np.random.default_rng(SEED)
    return drawing.multinomial(people, np.full(people, 1 / people), DRAWS).astype(np.float32)


class Tally:
    """The number of cases, and of errors at each threshold: as measured, and in every bootstrap draw."""

    def __init__(self, thresholds: int) -> None:
        self.cases = 0
        self.drawn_cases = np.zeros(DRAWS)
        self.errors = np.zeros(thresholds)
        self.drawn_errors = np.zeros((thresholds, DRAWS))

    def add_cases(self, count: int, drawn: Weights) -> None:
        """Add `count` pairs, whose weights in the draws sum to `drawn`."""
        self.cases += count
        self.drawn_cases += drawn

    def add_errors(self, place: int, count: int, drawn: Weights) -> None:
        """Add `count` errors at threshold number `place`, whose weights in the draws sum to `drawn`."""
        self.errors[place] += count
        self.drawn_errors[place] += drawn

    def draw(self, place: int) -> Rates:
        """The error rate at threshold number `place` in every draw."""
        with np.errstate(invalid="ignore"):  # 0 / 0, if nobody who was drawn has a case
            drawn: Rates = self.drawn_errors[place] / self.drawn_cases
        return drawn

    def summarize(self, place: int) -> Rate:
        """The error rate at threshold number `place`, with its interval."""
        return summarize(self.errors[place], self.cases, self.draw(place))


def measure_rates(pairs: LabelledEmbeddings | ListedPairs, thresholds: Sequence[float]) -> list[ErrorRates]:
    """FMR and FNMR at each threshold, with their intervals."""
    impostors, genuine = tally_errors(pairs, thresholds)
    return [
        ErrorRates(threshold, impostors.summarize(place), genuine.summarize(place))
        for place, threshold in enumerate(thresholds)
    ]


def measure_mean_rate(pairs: LabelledEmbeddings | ListedPairs, threshold: float) -> Rate:
    """The mean of FMR and FNMR at a threshold, with its interval; where they are equal, it is the EER."""
    impostors, genuine = tally_errors(pairs, [threshold])
    fmr, fnmr = impostors.summarize(0), genuine.summarize(0)
    mean = (fmr.value + fnmr.value) / 2
    if not mean:
        return Rate(0.0, 0.0, (fmr.high + fnmr.high) / 2)
    return summarize(mean, 1, (impostors.draw(0) + genuine.draw(0)) / 2)


def tally_errors(pairs: LabelledEmbeddings | ListedPairs, thresholds: Sequence[float]) -> tuple[Tally, Tally]:
    """The tallies of impostor and of genuine pairs at the thresholds."""
    steps = [to_step(threshold) for threshold in thresholds]
    return tally_all(pairs, steps) if isinstance(pairs, LabelledEmbeddings) else tally_listed(pairs, steps)


def tally_all(faces: LabelledEmbeddings, steps: Sequence[int]) -> tuple[Tally, Tally]:
    """The tallies of all pairs of faces; an impostor pair weighs the product of its two people's weights.

    A genuine pair weighs as its person does: a person who is drawn twice is no impostor of themselves.
    """
    _, people = np.unique(faces.people, return_inverse=True)
    weights = draw_people(int(people.max()) + 1)[:, people]  # (DRAWS, faces)
    impostors, genuine = Tally(len(steps)), Tally(len(steps))
    for tile in walk_tiles(faces):
        rows, columns = weights[:, tile.rows], weights[:, tile.columns]
        impostors.add_cases(int(tile.impostor.sum()), weigh_both(tile.impostor, rows, columns))
        genuine.add_cases(int(tile.genuine.sum()), weigh_one(tile.genuine, rows))
        for place, step in enumerate(steps):
            match = tile.steps >= step
            matched, missed = match & tile.impostor, ~match & tile.genuine
            impostors.add_errors(place, int(matched.sum()), weigh_both(matched, rows, columns))
            genuine.add_errors(place, int(missed.sum()), weigh_one(missed, rows))
    return impostors, genuine


def weigh_both(pairs: Flags, rows: Floats, columns: Floats) -> Rates:
    """The weight of the marked pairs of a tile in every draw: the product of row and column, summed."""
    if not pairs.any():
        return np.zeros(len(rows))
    return np.asarray(np.einsum("ij,ij->i", rows @ pairs.astype(np.float32), columns, dtype=np.float64))


def weigh_one(pairs: Flags, rows: Floats) -> Rates:
    """The weight of the marked genuine pairs of a tile in every draw: that of the row's person, summed."""
    return np.asarray(rows @ pairs.sum(1, dtype=np.float32), np.float64)


def tally_listed(pairs: ListedPairs, steps: Sequence[int]) -> tuple[Tally, Tally]:
    """The tallies of the pairs of a list that have a similarity."""
    impostors, genuine = Tally(len(steps)), Tally(len(steps))
    known = ~np.isnan(pairs.similarities)
    places = to_steps(np.where(known, pairs.similarities, 0))
    for some, weights in weigh_listed(pairs):
        for tally, kind in ((impostors, ~pairs.same), (genuine, pairs.same)):
            mine = (kind & known)[some]
            tally.add_cases(int(mine.sum()), weights @ mine.astype(np.float32))
            for place, step in enumerate(steps):
                match = places[some] >= step
                wrong = mine & (match if tally is impostors else ~match)
                tally.add_errors(place, int(wrong.sum()), weights @ wrong.astype(np.float32))
    return impostors, genuine


def weigh_listed(pairs: ListedPairs) -> Iterator[tuple[slice, Floats]]:
    """Slices of the list, and the weight of each of their pairs in every draw: (DRAWS, pairs)."""
    weights = draw_people(int(max(pairs.probes.max(), pairs.references.max())) + 1)
    for start in range(0, len(pairs.same), PAIRS_AT_ONCE):
        some = slice(start, start + PAIRS_AT_ONCE)
        probes, references = pairs.probes[some], pairs.references[some]
        drawn = weights[:, probes]
        yield some, np.where(probes == references, drawn, drawn * weights[:, references])


def measure_share(pairs: ListedPairs, marked: Flags) -> Rate:
    """The share of the pairs of a list that are marked, with its interval; missing pairs count as well."""
    return tally_share(pairs, marked).summarize(0)


def tally_share(pairs: ListedPairs, marked: Flags) -> Tally:
    """The tally of the pairs of a list, in which those that are marked are the errors."""
    tally = Tally(1)
    for some, weights in weigh_listed(pairs):
        mine = marked[some]
        tally.add_cases(len(mine), weights.sum(1, dtype=np.float64))
        tally.add_errors(0, int(mine.sum()), weights @ mine.astype(np.float32))
    return tally
