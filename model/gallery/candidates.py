"""Who a probe may be: candidates as values, and those of many probes column by column."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sameface.model.decision.similarity import DIGITS
from sameface.model.faces import Keys, Value
from sameface.model.gallery.index.hits import Hits
from sameface.model.store.records import FaceOwner


@dataclass(frozen=True, slots=True)
class Candidate(Value):
    """A person who may be the one on a probe, and the face by which the person was found."""

    person_id: str
    name: str | None
    similarity: float
    face_id: str


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """The candidates of many probes, one after the other, column by column; those of a probe best first."""

    starts: Keys  # (probes + 1,): the candidates of probe n are those from starts[n] to starts[n + 1]
    owners: list[FaceOwner]  # (candidates,)
    similarities: NDArray[np.float64]  # (candidates,), rounded as they are answered

    @classmethod
    def of(cls, hits: Hits, owners: Sequence[FaceOwner | None]) -> "Candidates":
        """The people of `hits`, whose faces row by row have these `owners`; None is left out."""
        kept = np.fromiter((owner is not None for owner in owners), bool, len(owners))
        starts = np.zeros(len(hits.faces) + 1, np.int64)
        np.cumsum(kept.reshape(hits.faces.shape).sum(axis=1), out=starts[1:])
        similarities = np.round(hits.similarities.ravel()[kept].astype(np.float64), DIGITS)
        return cls(starts, [owner for owner in owners if owner], similarities)

    @classmethod
    def none(cls) -> "Candidates":
        """The candidates of no probe."""
        return cls(np.zeros(1, np.int64), [], np.zeros(0))

    def closest(self) -> NDArray[np.float64]:
        """The similarity of each probe's first candidate, NaN where there is none."""
        firsts = np.append(self.similarities, np.nan)[self.starts[:-1]]
        return np.where(self.starts[1:] > self.starts[:-1], firsts, np.nan)

    def by_probe(self) -> list[list[Candidate]]:
        """The candidates of each probe as values."""
        everyone = [
            Candidate(owner.person_id, owner.name, similarity, owner.face_id)
            for owner, similarity in zip(self.owners, self.similarities.tolist(), strict=True)
        ]
        return [everyone[start:stop] for start, stop in pairwise(self.starts.tolist())]
