"""The shapes of what is asked of collections and the people in them."""

import base64
import json
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from sameface.api.schemas.fields import (
    CalibrationName,
    FacePolicy,
    Id,
    OnePolicy,
    Photo,
    Rate,
    Request,
    Similarity,
)
from sameface.model.decision.thresholds import Rule
from sameface.model.enroll import Application
from sameface.model.faces import Embedding
from sameface.model.gallery.gallery import Gallery
from sameface.model.identify import Question

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
    calibration: CalibrationName | None = Field(
        None, description="The calibration to decide by, of those that /v1/calibrations lists."
    )


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
            rule=Rule(self.threshold, self.target_fpir, self.extrapolate),
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
