"""The schemas of the people of a collection: enrol, look up, change."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from sameface.api.schemas.fields import (
    Id,
    Metadata,
    Name,
    Numbers,
    OnePolicy,
    Photo,
    Request,
    Response,
    read_json_text,
)
from sameface.model.bundles.bundle import Bundle
from sameface.model.enroll import EnrollRequest
from sameface.model.photo.embed import accept_embedding
from sameface.model.store.records import Person

MAX_EMBEDDINGS = 256  # of one request


class EnrollOptions(Request):
    """Which faces are taken."""

    faces: OnePolicy = Field("prominent", description="Which face of a photo to take.")
    min_quality: float = Field(0.0, ge=0, le=1, description="Reject faces of a lower quality score.")


class FacesRequest(EnrollOptions):
    """Faces of one person, by photos or by embeddings."""

    images: list[Photo] = Field(default=[], description="Photos of the person, one or more.")
    embeddings: Annotated[list[Numbers], BeforeValidator(read_json_text)] = Field(
        default=[], max_length=MAX_EMBEDDINGS, description="Embeddings of the person, made by `model`."
    )
    model: str | None = Field(None, description="The model that made the embeddings.")

    @model_validator(mode="after")
    def need_something(self) -> "FacesRequest":
        """Refuse a request with neither images nor embeddings."""
        if not self.images and not self.embeddings:
            raise ValueError("send images or embeddings")
        return self

    def to_request(self, collection: str, recogniser: Bundle, **others: Any) -> EnrollRequest:
        """The request as an EnrollRequest; `others` are its further fields."""
        return EnrollRequest(
            collection=collection,
            photos=self.images,
            embeddings=[accept_embedding(recogniser, values, self.model) for values in self.embeddings],
            faces=self.faces,
            min_quality=self.min_quality,
            **others,
        )


class PersonRequest(FacesRequest):
    """Somebody to enrol."""

    person_id: Id | None = Field(None, description="The person's id; one is made if there is none.")
    name: Name | None = None
    metadata: Metadata = Field(default={}, description="A JSON object of your own.")

    def to_request(self, collection: str, recogniser: Bundle, **others: Any) -> EnrollRequest:
        """The request as an EnrollRequest; `others` are its further fields."""
        who = {"person_id": self.person_id, "name": self.name, "metadata": self.metadata}
        return super().to_request(collection, recogniser, **who, **others)


def drop_defaults(schema: dict[str, Any]) -> None:
    """Show no defaults: a client that sent them would change what it meant to leave alone."""
    for field in schema["properties"].values():
        del field["default"]


class PersonUpdate(Request):
    """What to change of a person; what is not sent stays."""

    model_config = ConfigDict(json_schema_extra=drop_defaults)

    name: Name | None = Field(None, description="Null takes the name away.")
    metadata: Metadata = Field(default={}, description="Takes the place of all that is there.")


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


class EnrollWarning(Response):
    """Something odd about a face that was enrolled all the same."""

    code: Literal[
        "several_faces", "same_photo", "looks_like_another_person", "unlike_own_faces", "embedding_normalised"
    ]
    face_id: str
    person_id: str | None = Field(None, description="The other person, of a photo or of a likeness.")
    similarity: float | None = None
    faces_found: int | None = Field(None, description="The faces in the photo, if there are several.")


class EnrollResponse(Response):
    """Who was enrolled, with which faces."""

    person_id: str
    faces: list[EnrolledFace]
    rejected: list[Rejection]
    warnings: list[EnrollWarning]


class StoredFace(Response):
    """A face of an enrolled person."""

    face_id: str
    quality: float | None
    created_at: datetime


class PersonResponse(Response):
    """An enrolled person."""

    person_id: str
    name: str | None
    metadata: dict[str, Any]
    faces: list[StoredFace]
    created_at: datetime


class PersonList(Response):
    """People by id."""

    items: list[PersonResponse]
    next_cursor: str | None

    @classmethod
    def from_people(cls, people: list[Person], limit: int) -> "PersonList":
        """A page of people; a page of `limit` items has a cursor to the next."""
        items = [PersonResponse.model_validate(person) for person in people]
        return cls(items=items, next_cursor=items[-1].person_id if len(items) == limit else None)
