"""Histograms of the similarities of genuine and impostor pairs: exact counts in little memory."""

import operator
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sameface.model.decision.similarity import DIGITS, STEPS
from sameface.model.faces import Floats, Keys

Counts: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]
Steps: TypeAlias = NDArray[np.int32]

TILE = 1024  # faces on either side of a tile, which is compared at a time


@dataclass(frozen=True, eq=False)
class Scores:
    """A histogram of the similarities of one kind of pairs, with a bin for each step from -1 to 1."""

    counts: Counts  # (2 * STEPS + 1,)

    @cached_property
    def from_here_up(self) -> Counts:
        """For each bin the number of pairs in this bin and all above."""
        return np.ascontiguousarray(np.cumsum(self.counts[::-1])[::-1])

    @property
    def pairs(self) -> int:
        """The number of pairs."""
        return int(self.from_here_up[0])

    def count_from(self, threshold: float) -> int:
        """The number of pairs that match at `threshold`."""
        return int(self.from_here_up[to_step(threshold)])

    def share_from(self, threshold: float) -> float:
        """The share of pairs that match at `threshold`: of impostor pairs, the FMR."""
        return self.count_from(threshold) / self.pairs

    def share_below(self, threshold: float) -> float:
        """The share of pairs that do not match at `threshold`: of genuine pairs, the FNMR."""
        return 1 - self.share_from(threshold)

    def find_threshold(self, share: float) -> float:
        """The lowest threshold at which at most `share` of the pairs match; 1 if there is none."""
        allowed = share * self.pairs * (1 + 1e-12)  # for a share that is a rounded quotient of counts
        step = bisect_left(self.from_here_up, -allowed, key=operator.neg)
        return round(min(step, 2 * STEPS) / STEPS - 1, DIGITS)

    def mean_excess(self, threshold: float) -> float:
        """The mean of similarity minus `threshold` over the pairs that match."""
        above = self.counts[to_step(threshold) :]
        return float(np.arange(len(above)) @ above) / STEPS / max(1, int(above.sum()))


def count_scores(similarities: Floats) -> Scores:
    """The histogram of `similarities`."""
    return Scores(np.bincount(to_steps(similarities), minlength=2 * STEPS + 1))


def to_steps(similarities: Floats) -> Steps:
    """The histogram bin of each similarity."""
    steps = np.rint((similarities.astype(np.float64) + 1) * STEPS).astype(np.int32)
    return np.asarray(np.clip(steps, 0, 2 * STEPS), np.int32)


def to_step(threshold: float) -> int:
    """The first histogram bin whose similarity reaches `threshold`."""
    return int(to_steps(np.array(threshold)))


@dataclass(frozen=True, slots=True, eq=False)
class LabelledEmbeddings:
    """Embeddings with the person of each, so that every pair is known as genuine or impostor."""

    embeddings: Floats  # (faces, dimension), unit length
    people: Keys  # (faces,), numbered from 0

    @property
    def identities(self) -> int:
        """The number of people."""
        return len(np.unique(self.people))

    def of_people(self, chosen: Sequence[int] | Keys) -> "LabelledEmbeddings":
        """The embeddings of the people `chosen`, who keep their numbers."""
        mine = np.isin(self.people, chosen)
        return LabelledEmbeddings(self.embeddings[mine], self.people[mine])


@dataclass(frozen=True, slots=True, eq=False)
class ListedPairs:
    """The pairs of a list with their similarities, NaN where a face is missing."""

    similarities: Floats  # (pairs,)
    same: Flags
    probes: Keys  # the person of each probe, numbered from 0
    references: Keys  # the person of each reference
    folds: Keys

    def score(self) -> tuple[Scores, Scores]:
        """The histograms of genuine and of impostor pairs."""
        known = ~np.isnan(self.similarities)
        return (
            count_scores(self.similarities[known & self.same]),
            count_scores(self.similarities[known & ~self.same]),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Tile:
    """A block of the similarity matrix; over all tiles, every pair of faces is marked exactly once."""

    rows: slice
    columns: slice
    steps: Steps  # (rows, columns): the histogram bins of the similarities
    genuine: Flags
    impostor: Flags


def walk_tiles(faces: LabelledEmbeddings) -> Iterator[Tile]:
    """All pairs of faces, tile by tile, so that memory stays flat however many faces there are."""
    starts = range(0, len(faces.people), TILE)
    for top in starts:
        for left in starts[top // TILE :]:
            rows, columns = slice(top, top + TILE), slice(left, left + TILE)
            same = faces.people[rows, None] == faces.people[None, columns]
            once = np.triu(np.ones_like(same), 1) if top == left else np.ones_like(same)
            yield Tile(
                rows,
                columns,
                to_steps(faces.embeddings[rows] @ faces.embeddings[columns].T),
                same & once,
                ~same & once,
            )


def score_all_pairs(faces: LabelledEmbeddings) -> tuple[Scores, Scores]:
    """The histograms of genuine and of impostor pairs over all pairs of faces."""
    genuine, impostor = (np.zeros(2 * STEPS + 1, np.int64) for _ in range(2))
    for tile in walk_tiles(faces):
        genuine += np.bincount(tile.steps[tile.genuine], minlength=len(genuine))
        impostor += np.bincount(tile.steps[tile.impostor], minlength=len(impostor))
    return Scores(genuine), Scores(impostor)
