"""What calls about people return: enrolments, listings, answers of batches."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sameface_client.answers.decisions import IdentifiedFace
from sameface_client.errors import SamefaceError
from sameface_client.values import Value


@dataclass(frozen=True, slots=True)
class EnrolledFace(Value):
    """An enrolled face; `image` is the index of its photo or embedding in the request, photos first."""

    face_id: str
    image: int
    quality: float | None


@dataclass(frozen=True, slots=True)
class Rejection(Value):
    """A rejected photo: its index in the request, and the code and the sentence of the error."""

    image: int
    code: str
    detail: str


@dataclass(frozen=True, slots=True)
class EnrollWarning(Value):
    """Something odd about a face that was enrolled all the same."""

    code: str
    face_id: str
    person_id: str | None = None
    similarity: float | None = None
    faces_found: int | None = None


@dataclass(frozen=True, slots=True)
class Enrollment(Value):
    """Who was enrolled, with which faces; the rejected photos and the warnings."""

    person_id: str
    faces: list[EnrolledFace]
    rejected: list[Rejection]
    warnings: list[EnrollWarning]


@dataclass(frozen=True, slots=True)
class CollectionDescription(Value):
    """A collection as it is now: its numbers of people and faces, and what it was made with."""

    name: str
    people: int
    faces: int
    model: str
    index: str  # how it is searched
    revision: int  # counts every change
    store_crops: bool
    calibration: str | None
    reviewers: int  # people who must confirm a match
    created_at: datetime


@dataclass(frozen=True, slots=True)
class StoredFace(Value):
    """A face of an enrolled person."""

    face_id: str
    quality: float | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Person(Value):
    """An enrolled person."""

    person_id: str
    name: str | None
    metadata: dict[str, Any]
    faces: list[StoredFace]
    created_at: datetime


@dataclass(frozen=True, slots=True)
class BatchIdentified(Value):
    """Who is in one probe of a batch."""

    id: str
    results: list[IdentifiedFace]


@dataclass(frozen=True, slots=True)
class BatchEnrolled(Value):
    """Who was enrolled by one entry of a batch."""

    id: str
    person_id: str
    faces: list[EnrolledFace]
    warnings: list[EnrollWarning]


@dataclass(frozen=True, slots=True)
class BatchFailed(Value):
    """Why one entry of a batch failed; the others go on."""

    id: str
    error: SamefaceError

    def to_dict(self) -> dict[str, Any]:
        """The id, and the error as its code, its sentence and its facts."""
        error = {"code": self.error.code, "detail": self.error.detail, **self.error.facts}
        return {"id": self.id, "error": error}
