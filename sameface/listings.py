"""Collections and people as `sameface.open()` lists them: in the names of the HTTP API."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sameface.model.faces import Value
from sameface.model.gallery.index.faiss_search import choose_kind
from sameface.model.store import records


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

    @classmethod
    def of(cls, collection: records.Collection) -> "CollectionDescription":
        """The description of a stored collection."""
        return cls(
            name=collection.name,
            people=collection.people,
            faces=collection.faces,
            model=collection.bundle,
            index=choose_kind(collection.faces, "cpu"),
            revision=collection.revision,
            store_crops=collection.store_crops,
            calibration=collection.calibration,
            reviewers=collection.reviewers,
            created_at=to_datetime(collection.created_at),
        )


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

    @classmethod
    def of(cls, person: records.Person) -> "Person":
        """The listing of a stored person."""
        return cls(
            person_id=person.person_id,
            name=person.name,
            metadata=person.metadata,
            faces=[
                StoredFace(face.face_id, face.quality, to_datetime(face.created_at)) for face in person.faces
            ],
            created_at=to_datetime(person.created_at),
        )


def to_datetime(seconds: float) -> datetime:
    """A Unix time as a date and time in UTC."""
    return datetime.fromtimestamp(seconds, UTC)
