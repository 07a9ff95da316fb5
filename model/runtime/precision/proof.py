"""The proof that a network of lower precision embeds faces as the exact one does, on this machine."""

from dataclasses import dataclass, replace

import numpy as np

from sameface.model.bundles.bundle import Bundle
from sameface.model.faces import Floats, Pixels, Value
from sameface.model.runtime.session import Session

LEAST_COSINE = 0.999  # of the two embeddings of every face
LEAST_ROUNDED = 0.995  # the same by two engines of an eight-bit graph, where a step more or less adds up


@dataclass(frozen=True, slots=True)
class Agreement:
    """The cosine of the two embeddings of each face, by two sessions of one network."""

    faces: int
    mean_cosine: float
    worst_cosine: float

    @property
    def holds(self) -> bool:
        """Whether embeddings of the two may meet in one gallery."""
        return self.worst_cosine >= LEAST_COSINE


@dataclass(frozen=True, slots=True)
class Proof(Value):
    """A lower precision on this machine: whether it is used, why not, and how it compares with the exact one.

    The speeds are of one thread, taking turns. What was not measured is None.
    """

    precision: str
    used: bool
    fault: str | None = None
    faces: int | None = None
    own_faces: bool = False
    mean_cosine: float | None = None
    worst_cosine: float | None = None
    crops_per_second: float | None = None
    exact_crops_per_second: float | None = None

    def accepted(self) -> "Proof":
        """The proof of a precision that is used."""
        return replace(self, used=True, fault=None)

    def describe(self) -> str:
        """The proof in one line."""
        if self.faces is None:
            return f"no {self.precision}: {self.fault}"
        kind = "own" if self.own_faces else "drawn"
        measured = (
            f"cosine {self.mean_cosine:.5f}, at worst {self.worst_cosine:.5f}, on {self.faces} {kind} faces"
        )
        speeds = (
            f"{self.crops_per_second:.0f} against {self.exact_crops_per_second:.0f} crops/s on one thread"
        )
        refused = "" if self.used else f"; not used: {self.fault}"
        return f"{self.precision}: {measured}, {speeds}{refused}"


def compare_embeddings(bundle: Bundle, exact: Session, other: Session, crops: Pixels) -> Agreement:
    """Embed every crop by both sessions, one at a time."""
    cosines = []
    for crop in crops:
        pixels = bundle.preprocess(crop[np.newaxis])
        [right], [found] = (session.run(None, {session.input_name: pixels})[0] for session in (exact, other))
        cosines.append(measure_cosine(right, found))
    return Agreement(len(cosines), float(np.mean(cosines)), float(np.min(cosines)))


def measure_cosine(one: Floats, other: Floats) -> float:
    """The cosine of two embeddings; -1 if one of them has no direction."""
    exact = one.astype(np.float64)  # a float32 could not tell 0.9999999 from 1
    lengths = float(np.linalg.norm(exact)) * float(np.linalg.norm(other.astype(np.float64)))
    cosine = float(exact @ other) / lengths if lengths else -1.0
    return cosine if np.isfinite(cosine) else -1.0
