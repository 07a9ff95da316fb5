"""Who is in the probes of a block: face by face as values, or all of them column by column."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sameface.model.errors import SamefaceError
from sameface.model.faces import Face, Value
from sameface.model.gallery.candidates import Candidate, Candidates


@dataclass(frozen=True, slots=True)
class IdentifiedFace(Value):
    """One face of a probe, its match if there is one, and the best candidates."""

    face: Face | None  # None where an embedding was sent
    normalised: bool  # the embedding was sent at another length than 1
    match: Candidate | None
    candidates: list[Candidate]


@dataclass(frozen=True, slots=True, eq=False)
class Identified:
    """The faces in the probes of a block, with their candidates; a probe has an error or faces."""

    count: int  # probes
    errors: Mapping[int, SamefaceError]  # by place of the probe
    places: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, np.intp))  # (faces,), ascending
    faces: Sequence[Face | None] = ()  # None where an embedding was sent
    normalised: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))  # (faces,)
    matched: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))  # (faces,)
    candidates: Candidates = field(default_factory=Candidates.none)  # a matched face's first is its match

    def by_face(self) -> list[IdentifiedFace]:
        """Every face as a value."""
        columns = (self.faces, self.normalised.tolist(), self.matched.tolist(), self.candidates.by_probe())
        return [
            IdentifiedFace(face, normalised, candidates[0] if matched else None, candidates)
            for face, normalised, matched, candidates in zip(*columns, strict=True)
        ]

    def by_probe(self) -> list[list[IdentifiedFace] | SamefaceError]:
        """For each probe its faces as values, or its error."""
        found: list[list[IdentifiedFace]] = [[] for _ in range(self.count)]
        for place, face in zip(self.places.tolist(), self.by_face(), strict=True):
            found[place].append(face)
        return [self.errors.get(place, faces) for place, faces in enumerate(found)]
