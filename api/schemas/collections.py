"""The shapes of what is answered about collections and the people in them."""

from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import Field

from sameface.api.schemas.fields import Face, Response
from sameface.model.gallery.gallery import Gallery
from sameface.model.store.records import Collection


class CollectionResponse(Response):
    """A collection as it is now."""

    name: str
    people: int
    faces: int
    model: str
    index: str = Field(description="How it is searched.")
    revision: int = Field(description="Counts every change.")
    store_crops: bool
    calibration: str | None
    created_at: datetime

    @classmethod
    def from_collection(cls, collection: Collection, gallery: Gallery) -> "CollectionResponse":
        """A collection with what is in it."""
        return cls(
            name=collection.name,
            people=collection.people,
            faces=collection.faces,
            model=collection.bundle,
            index=gallery.indexes.kind_of(collection),
            revision=collection.revision,
            store_crops=collection.store_crops,
            calibration=collection.calibration,
            created_at=datetime.fromtimestamp(collection.created_at, UTC),
        )


class CollectionList(Response):
    """Collections by name."""

    items: list[CollectionResponse]
    next_cursor: str | None

    @classmethod
    def page(cls, gallery: Gallery, limit: int, cursor: str) -> "CollectionList":
        """The collections after the cursor."""
        found = gallery.store.collections.page(limit, cursor)
        items = [CollectionResponse.from_collection(collection, gallery) for collection in found]
        return cls(items=items, next_cursor=items[-1].name if len(items) == limit else None)


class StoredFaceResponse(Response):
    """A face of an enrolled person."""

    face_id: str
    quality: float | None
    created_at: datetime


class PersonResponse(Response):
    """An enrolled person."""

    person_id: str
    name: str | None
    metadata: dict[str, Any]
    faces: list[StoredFaceResponse]
    created_at: datetime


class PersonList(Response):
    """People by id."""

    items: list[PersonResponse]
    next_cursor: str | None

    @classmethod
    def page(cls, gallery: Gallery, collection: Collection, limit: int, cursor: str) -> "PersonList":
        """The people after the cursor."""
        found = gallery.store.people.page(collection, limit, cursor)
        items = [PersonResponse.model_validate(person) for person in found]
        return cls(items=items, next_cursor=items[-1].person_id if len(items) == limit else None)


class EnrolledFace(Response):
    """A face that was taken; `image` is its place among what was sent, from 0."""

    face_id: str
    image: int
    quality: float | None


class Rejection(Response):
    """A photo that was not taken, and why."""

    image: int
    code: str
    detail: str


class Oddity(Response):
    """Something odd about a face that was taken."""

    code: Literal["same_photo", "looks_like_another_person", "unlike_own_faces", "embedding_normalised"]
    face_id: str
    person_id: str | None = None
    similarity: float | None = None


class EnrolResponse(Response):
    """Who was enrolled, with which faces."""

    person_id: str
    faces: list[EnrolledFace]
    rejected: list[Rejection]
    warnings: list[Oddity]


class CandidateResponse(Response):
    """A person who may be the one in question."""

    person_id: str
    name: str | None
    similarity: float
    face_id: str


class IdentifyResult(Response):
    """One face and who it may be; no match means unknown."""

    face: Face | None = Field(description="Null where an embedding was sent.")
    normalised: bool = Field(False, description="The embedding was sent at another length than 1.")
    match: CandidateResponse | None
    candidates: list[CandidateResponse]


class IdentifyResponse(Response):
    """Who is in a photo."""

    collection: str
    gallery_size: int
    gallery_faces: int
    threshold: float
    target_fpir: float | None
    extrapolated: bool = Field(description="The rate is lower than the calibration's data supports.")
    calibration: str | None
    model: str
    results: list[IdentifyResult]
    timings_ms: dict[str, float]
