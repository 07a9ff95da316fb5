"""Collections, people and the audit as `sameface.open()` lists them: in the names of the HTTP API."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sameface.model.access.audit.reviews import AuditedEntry
from sameface.model.faces import Value
from sameface.model.store import records
from sameface.model.store.access.audit import StoredEntry


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
    def of(cls, collection: records.Collection, index: str) -> "CollectionDescription":
        """The description of a stored collection; `index` says how it is searched."""
        return cls(
            name=collection.name,
            people=collection.people,
            faces=collection.faces,
            model=collection.bundle,
            index=index,
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


@dataclass(frozen=True, slots=True)
class Review(Value):
    """What somebody said about a decision."""

    entry_id: str
    time: datetime
    reviewer: str
    confirmed: bool
    caller: str

    @classmethod
    def of(cls, stored: StoredEntry) -> "Review":
        """The review that an entry of the audit is."""
        entry = stored.entry
        return cls(
            entry_id=stored.entry_id,
            time=to_datetime(entry.time),
            reviewer=entry.details["reviewer"],
            confirmed=entry.outcome == "confirmed",
            caller=entry.actor.caller,
        )


@dataclass(frozen=True, slots=True)
class AuditEntry(Value):
    """A change, a decision or a review, with the reviews of a decision, earliest first."""

    entry_id: str
    time: datetime  # when it was done or decided
    started_at: datetime | None  # when the work on a decision began
    action: str
    outcome: str
    caller: str
    request_id: str | None
    route: str | None
    collection: str | None
    revision: int | None  # of the collection: after a change, or as it was searched
    person_id: str | None
    model: str | None
    similarity: float | None
    threshold: float | None
    reviewed: str | None  # the entry that a review is about
    details: dict[str, Any]
    hash: str  # of this entry and of the one before it in its chain
    reviews: list[Review]
    review_status: str | None  # pending, confirmed or rejected; None if no review is needed

    @classmethod
    def of(cls, audited: AuditedEntry) -> "AuditEntry":
        """The listing of an entry with its reviews."""
        columns, started = audited.stored.entry.to_columns(), audited.stored.entry.started_at
        return cls(
            **columns
            | {
                "entry_id": audited.stored.entry_id,
                "time": to_datetime(columns["time"]),
                "started_at": None if started is None else to_datetime(started),
                "hash": audited.stored.hash,
                "reviews": [Review.of(review) for review in audited.reviews],
                "review_status": audited.status,
            }
        )


def to_datetime(seconds: float) -> datetime:
    """A Unix time as a date and time in UTC."""
    return datetime.fromtimestamp(seconds, UTC)
