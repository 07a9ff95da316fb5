"""The shapes of what is said about collections and the people in them."""

import base64
import json
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from api.schemas import Face, FacePolicy, Id, OnePolicy, Photo, Rate, Request, Response, Similarity
from model.enrolment import Application
from model.faces import Embedding
from model.gallery import Gallery
from model.identify import Question
from model.records import Collection

MAX_METADATA_BYTES = 16_000


def read_json_text(value: Any) -> Any:
    """In a form, what is not text comes as JSON."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError as error:
        raise ValueError("must be JSON") from error


def read_numbers(value: Any) -> Any:
    """An embedding as /v1/embed writes it: a list of numbers, or base64 of little-endian float32."""
    if not isinstance(value, str):
        return value
    if value.startswith("["):
        return read_json_text(value)
    try:
        return np.frombuffer(base64.b64decode(value, validate=True), "<f4").tolist()
    except ValueError as error:
        raise ValueError("must be a list of numbers, or base64 of little-endian float32") from error


def limit_metadata(value: dict[str, Any]) -> dict[str, Any]:
    """Metadata is for a few facts, not for files."""
    if len(json.dumps(value)) > MAX_METADATA_BYTES:
        raise ValueError(f"may have {MAX_METADATA_BYTES} bytes")
    return value


Name = Annotated[str, Field(max_length=200)]
NUMBERS_SCHEMA = {
    "anyOf": [
        {"type": "array", "items": {"type": "number"}, "maxItems": 4096},
        {"type": "string", "contentEncoding": "base64"},
    ]
}
Numbers = Annotated[
    list[float], Field(max_length=4096), BeforeValidator(read_numbers), WithJsonSchema(NUMBERS_SCHEMA)
]
Metadata = Annotated[dict[str, Any], BeforeValidator(read_json_text), AfterValidator(limit_metadata)]


class CollectionRequest(Request):
    """What a collection is to be."""

    store_crops: bool = Field(False, description="Keep the aligned crop of every face.")
    calibration: Id | None = Field(None, description="The calibration to decide by.")


class EnrolOptions(Request):
    """Which faces are taken."""

    faces: OnePolicy = Field("prominent", description="Which face of a photo to take.")
    min_quality: float = Field(0.0, ge=0, le=1, description="Reject faces of a lower quality score.")


class FacesRequest(EnrolOptions):
    """Faces of one person, by photos or by embeddings."""

    images: list[Photo] = Field(default=[], description="Photos of the person, one or more.")
    embeddings: Annotated[list[Numbers], BeforeValidator(read_json_text)] = Field(
        default=[], description="Embeddings of the person, made by `model`."
    )
    model: str | None = Field(None, description="The model that made the embeddings.")

    @model_validator(mode="after")
    def need_something(self) -> "FacesRequest":
        """Nobody is enrolled by name alone."""
        if not self.images and not self.embeddings:
            raise ValueError("send images or embeddings")
        return self

    def to_application(self, gallery: Gallery, **others: Any) -> Application:
        """For the registrar."""
        return Application(
            photos=self.images,
            embeddings=[gallery.take_embedding(values, self.model) for values in self.embeddings],
            faces=self.faces,
            min_quality=self.min_quality,
            **others,
        )


class PersonRequest(FacesRequest):
    """Somebody to enrol."""

    person_id: Id | None = Field(None, description="The person's id; one is made if there is none.")
    name: Name | None = None
    metadata: Metadata = Field(default={}, description="A JSON object of your own.")

    def to_application(self, gallery: Gallery, **others: Any) -> Application:
        """For the registrar."""
        who = {"person_id": self.person_id, "name": self.name, "metadata": self.metadata}
        return super().to_application(gallery, **who, **others)


class PersonUpdate(Request):
    """What to change of a person; what is not sent stays."""

    name: Name | None = None
    metadata: Metadata = Field(default={})


class SearchOptions(Request):
    """How to search, and what counts as a match."""

    limit: int = Field(5, ge=1, le=100, description="Candidates per face.")
    faces: FacePolicy = Field("all", description="Which faces of a photo to identify.")
    fusion: Literal["max", "mean"] = Field("max", description="By the best face or the mean of them.")
    threshold: Similarity | None = Field(None, description="The similarity of a match.")
    target_fpir: Rate | None = Field(None, description="The false positive rate to decide at, instead.")
    extrapolate: bool = Field(True, description="Allow a rate beyond what the calibration's data supports.")

    @model_validator(mode="after")
    def refuse_two_rules(self) -> "SearchOptions":
        """A threshold and a rate are two answers to one question."""
        if self.threshold is not None and self.target_fpir is not None:
            raise ValueError("send threshold or target_fpir, not both")
        return self

    def to_question(self) -> Question:
        """For the search."""
        return Question(
            limit=self.limit,
            faces=self.faces,
            fusion=self.fusion,
            threshold=self.threshold,
            target_fpir=self.target_fpir,
        )


class Probe(Request):
    """A photo or an embedding."""

    image: Photo | None = Field(None, description="The photo in question.")
    embedding: Numbers | None = Field(None, description="An embedding instead of a photo, made by `model`.")
    model: str | None = Field(None, description="The model that made the embedding.")

    @model_validator(mode="after")
    def need_one_of_them(self) -> "Probe":
        """One probe, one face to look for."""
        if (self.image is None) == (self.embedding is None):
            raise ValueError("send image or embedding, one of them")
        return self

    def to_probe(self, gallery: Gallery) -> bytes | Embedding:
        """The photo, or the embedding that was brought."""
        return (
            self.image if self.image is not None else gallery.take_embedding(self.embedding or [], self.model)
        )


class IdentifyRequest(Probe, SearchOptions):
    """Who is this?"""


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
        found = gallery.store.list_collections(limit, cursor)
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
        found = gallery.store.list_people(collection, limit, cursor)
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
    extrapolated: bool
    model: str
    results: list[IdentifyResult]
    timings_ms: dict[str, float]
