"""What was seen in photos and what was decided about them, as values that do not change."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from sameface.model.decision.similarity import measure_similarity
from sameface.model.faces import AlignedFace, EmbeddedFace, Embedding
from sameface.model.observer import Stopwatch

Face = TypeVar("Face", bound=AlignedFace)


@dataclass(frozen=True, slots=True)
class Look(Generic[Face]):
    """What was seen in one photo: how many faces, and those that were chosen."""

    faces_found: int
    faces: list[Face]
    stopwatch: Stopwatch

    @property
    def timings_ms(self) -> dict[str, float]:
        """Where the time went, up to now."""
        return self.stopwatch.milliseconds()


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison."""

    faces_found: int
    face: EmbeddedFace


@dataclass(frozen=True, slots=True)
class EnrolledPerson:
    """Somebody whose faces are known already."""

    person_id: str
    faces: Mapping[str, Embedding]  # by face id
    calibration: str | None = None  # of the collection, if it has its own


@dataclass(frozen=True, slots=True)
class EnrolledFace:
    """The face of an enrolled person that a probe was closest to."""

    person_id: str
    face_id: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer to "is this the same face?", with all that it rests on."""

    same_person: bool
    similarity: float
    threshold: float
    target_fmr: float | None
    estimated_fmr: float | None
    extrapolated: bool
    calibration: str | None
    model: str
    probe: Side
    reference: Side | EnrolledFace
    timings_ms: dict[str, float]


def compare(probe: Side, reference: Side | EnrolledPerson) -> tuple[float, Side | EnrolledFace]:
    """The similarity to the reference, of an enrolled person to the face that is closest."""
    if isinstance(reference, Side):
        return measure_similarity(probe.face.embedding, reference.face.embedding), reference
    similarity, face_id = max(
        (measure_similarity(probe.face.embedding, embedding), face_id)
        for face_id, embedding in reference.faces.items()
    )
    return similarity, EnrolledFace(reference.person_id, face_id)
