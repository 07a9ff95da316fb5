"""Genuine and impostor scores: how many pairs have which similarity, counted exactly and in little memory."""

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

TILE = 1024  # faces by faces that are compared at a time


@dataclass(frozen=True, eq=False)
class Scores:
    """How many pairs of one kind there are at each similarity from -1 to 1."""

    counts: Counts  # (2 * STEPS + 1,)

    @cached_property
    def from_here_up(self) -> Counts:
        """How many pairs are at least as similar as each step."""
        return np.ascontiguousarray(np.cumsum(self.counts[::-1])[::-1])

    @property
    def pairs(self) -> int:
        """How many there are."""
        return int(self.from_here_up[0])

    def count_from(self, threshold: float) -> int:
        """How many would match at this threshold."""
        return int(self.from_here_up[to_step(threshold)])

    def share_from(self, threshold: float) -> float:
        """Of impostors, the FMR at this threshold."""
        return self.count_from(threshold) / self.pairs

    def share_below(self, threshold: float) -> float:
        """Of genuine pairs, the FNMR at this threshold."""
        return 1 - self.share_from(threshold)

    def find_threshold(self, share: float) -> float:
        """The lowest threshold at which no larger share of the pairs would match; 1 if there is none."""
        allowed = share * self.pairs * (1 + 1e-12)  # a count that was divided is whole again
        step = bisect_left(self.from_here_up, -allowed, key=operator.neg)
        return round(min(step, 2 * STEPS) / STEPS - 1, DIGITS)

    def mean_excess(self, threshold: float) -> float:
        """How far above a threshold those lie that reach it, on average."""
        above = self.counts[to_step(threshold) :]
        return float(np.arange(len(above)) @ above) / STEPS / max(1, int(above.sum()))


def count_scores(similarities: Floats) -> Scores:
    """The scores of pairs whose similarities are at hand."""
    return Scores(np.bincount(to_steps(similarities), minlength=2 * STEPS + 1))


def to_steps(similarities: Floats) -> Steps:
    """The place of each similarity among the counts."""
    steps = np.rint((similarities.astype(np.float64) + 1) * STEPS).astype(np.int32)
    return np.asarray(np.clip(steps, 0, 2 * STEPS), np.int32)


def to_step(threshold: float) -> int:
    """The place of the first similarity that reaches a threshold."""
    return int(to_steps(np.array(threshold)))


@dataclass(frozen=True, slots=True, eq=False)
class LabelledEmbeddings:
    """Embeddings, and whose each is: all pairs of them are genuine or impostors."""

    embeddings: Floats  # (faces, dimension), unit length
    people: Keys  # (faces,), numbered from 0

    @property
    def identities(self) -> int:
        """How many people there are."""
        return len(np.unique(self.people))

    def of_people(self, chosen: Sequence[int] | Keys) -> "LabelledEmbeddings":
        """The part that is of some of the people, numbered as before."""
        mine = np.isin(self.people, chosen)
        return LabelledEmbeddings(self.embeddings[mine], self.people[mine])


@dataclass(frozen=True, slots=True, eq=False)
class ListedPairs:
    """Pairs that a list names, with their similarities; one that lacks a face has none (NaN)."""

    similarities: Floats  # (pairs,)
    same: Flags
    probes: Keys  # whose the two faces are, numbered from 0
    references: Keys
    folds: Keys

    def score(self) -> tuple[Scores, Scores]:
        """The genuine and the impostor scores."""
        known = ~np.isnan(self.similarities)
        return (
            count_scores(self.similarities[known & self.same]),
            count_scores(self.similarities[known & ~self.same]),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Tile:
    """Some faces compared with some: every pair of all faces is in one tile, once."""

    rows: slice
    columns: slice
    steps: Steps  # (rows, columns): the similarities, as they are counted
    genuine: Flags
    impostor: Flags


def walk_tiles(faces: LabelledEmbeddings) -> Iterator[Tile]:
    """All pairs of faces, so many at a time that memory stays flat however many there are."""
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
    """The genuine and the impostor scores of everybody with everybody."""
    genuine, impostor = (np.zeros(2 * STEPS + 1, np.int64) for _ in range(2))
    for tile in walk_tiles(faces):
        genuine += np.bincount(tile.steps[tile.genuine], minlength=len(genuine))
        impostor += np.bincount(tile.steps[tile.impostor], minlength=len(impostor))
    return Scores(genuine), Scores(impostor)
