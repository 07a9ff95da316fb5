"""How sure a measured error rate is: a bootstrap over people, because pairs that share a person are alike."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from model.scores import LabelledEmbeddings, to_step, walk_tiles

Rates: TypeAlias = NDArray[np.float64]

DRAWS = 400
SEED = 20180109
LEVEL = 95  # per cent
NONE_SEEN = 3.0  # of n without an error, 95 % sure: the rate is below 3 / n


@dataclass(frozen=True, slots=True)
class Rate:
    """An error rate as it was measured, and the 95 % interval it may really lie in."""

    value: float
    low: float
    high: float


def summarize(errors: float, cases: float, drawn: Rates) -> Rate:
    """A rate with its interval; where no error was seen, draws have no width and the rule of three has."""
    if not cases:
        return Rate(0.0, 0.0, 1.0)
    if not errors:
        return Rate(0.0, 0.0, min(1.0, NONE_SEEN / cases))
    edge = (100 - LEVEL) / 2
    low, high = np.nanpercentile(drawn, [edge, 100 - edge])
    return Rate(float(errors / cases), float(low), float(high))


def draw_people(people: int) -> NDArray[np.float32]:
    """How often each person is drawn when as many are drawn as there are, for every draw: (DRAWS, people)."""
    drawing = np.random.default_rng(SEED)
    return drawing.multinomial(people, np.full(people, 1 / people), DRAWS).astype(np.float32)


def draw_rates(
    errors: NDArray[np.float64], cases: NDArray[np.float64], weights: NDArray[np.float32]
) -> Rates:
    """The rate in every draw, of errors and cases that belong to one person each: (DRAWS,)."""
    with np.errstate(invalid="ignore"):  # nobody who was drawn has a case
        rates: Rates = (weights @ errors) / (weights @ cases)
    return rates


@dataclass(frozen=True, slots=True)
class ErrorRates:
    """Both error rates at a threshold."""

    threshold: float
    fmr: Rate
    fnmr: Rate


def measure_rates(faces: LabelledEmbeddings, thresholds: Sequence[float]) -> list[ErrorRates]:
    """FMR and FNMR at each threshold over all pairs of faces, with their intervals.

    A pair of two people weighs as often as both were drawn, multiplied; a person drawn twice is never an
    impostor of itself.
    """
    _, people = np.unique(faces.people, return_inverse=True)
    weights = draw_people(int(people.max()) + 1)
    by_face = weights[:, people]  # (DRAWS, faces)
    impostors, genuine = Tally(len(thresholds)), Tally(len(thresholds))
    for tile in walk_tiles(faces):
        rows, columns = by_face[:, tile.rows], by_face[:, tile.columns]
        impostors.add_cases(tile.impostor, rows, columns)
        genuine.add_cases(tile.genuine, rows, None)
        for place, threshold in enumerate(thresholds):
            match = tile.steps >= to_step(threshold)
            impostors.add_errors(place, match & tile.impostor, rows, columns)
            genuine.add_errors(place, ~match & tile.genuine, rows, None)
    return [
        ErrorRates(threshold, impostors.summarize(place), genuine.summarize(place))
        for place, threshold in enumerate(thresholds)
    ]


class Tally:
    """Errors and cases as they are and as they weigh in every draw, for several thresholds."""

    def __init__(self, thresholds: int) -> None:
        self.cases = 0
        self.errors = np.zeros(thresholds)
        self.drawn_cases = np.zeros(DRAWS)
        self.drawn_errors = np.zeros((thresholds, DRAWS))

    def add_cases(
        self,
        pairs: NDArray[np.bool_],
        rows: NDArray[np.float32],
        columns: NDArray[np.float32] | None,
    ) -> None:
        """Pairs of a tile that are of the kind."""
        self.cases += int(pairs.sum())
        self.drawn_cases += weigh(pairs, rows, columns)

    def add_errors(
        self,
        place: int,
        pairs: NDArray[np.bool_],
        rows: NDArray[np.float32],
        columns: NDArray[np.float32] | None,
    ) -> None:
        """Pairs of a tile that are decided wrong at a threshold."""
        self.errors[place] += int(pairs.sum())
        self.drawn_errors[place] += weigh(pairs, rows, columns)

    def summarize(self, place: int) -> Rate:
        """The rate at a threshold."""
        with np.errstate(invalid="ignore"):
            drawn = self.drawn_errors[place] / self.drawn_cases
        return summarize(self.errors[place], self.cases, drawn)


def weigh(pairs: NDArray[np.bool_], rows: NDArray[np.float32], columns: NDArray[np.float32] | None) -> Rates:
    """What marked pairs weigh in every draw: as both sides, or of one person's pairs, as that person does."""
    if not pairs.any():
        return np.zeros(len(rows))
    if columns is None:
        return np.asarray(rows @ pairs.sum(1, dtype=np.float32), np.float64)
    return np.asarray(np.einsum("ij,ij->i", rows @ pairs.astype(np.float32), columns, dtype=np.float64))
