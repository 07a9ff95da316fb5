"""Fields that several requests and responses share, with their validators."""

import base64
import binascii
import json
import re
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    model_validator,
)

from sameface.model.bundles.bundle import Bundle
from sameface.model.decision.thresholds import LOWEST_RATE
from sameface.model.faces import Embedding
from sameface.model.photo.embed import accept_embedding
from sameface.model.store.records import ID_LENGTH, ID_PATTERN, MAX_NAME, find_metadata_fault, is_text

TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]")
MAX_NUMBERS = 4096  # of one embedding


NUMBERS_SCHEMA = {
    "anyOf": [
        {"type": "array", "items": {"type": "number"}, "maxItems": MAX_NUMBERS},
        {"type": "string", "contentEncoding": "base64"},
    ]
}


def read_photo(value: Any) -> Any:
    """The bytes of a photo: a form has them as they are, JSON as base64, alone or in a data URL."""
    if isinstance(value, bytes):
        return value
    if not isinstance(value, dict) or set(value) != {"base64"} or not isinstance(value["base64"], str):
        raise ValueError('an image is sent as a file part, or in JSON as {"base64": "..."}')
    text = value["base64"]
    if text.startswith("data:"):
        head, comma, text = text.partition(",")
        if not (comma and head.endswith(";base64")):
            raise ValueError("should be base64, as a data URL too: `data:image/jpeg;base64,...`")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError("the base64 is not valid") from error


def read_json_text(value: Any) -> Any:
    """Parse a form field that holds JSON; a value that is no text is returned unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise ValueError("must be JSON, and not nested hundreds of times") from error


def read_numbers(value: Any) -> Any:
    """An embedding as /v1/embed writes it: a list of numbers, or base64 of little-endian float32."""
    if not isinstance(value, str):
        return value
    if value.startswith("["):
        return read_json_text(value)
    if len(value) > MAX_NUMBERS * 4 * 4 / 3 + 4:  # looked at before it is expanded
        raise ValueError(f"may have {MAX_NUMBERS} numbers")
    try:
        return np.frombuffer(base64.b64decode(value, validate=True), "<f4").tolist()
    except ValueError as error:
        raise ValueError("must be a list of numbers, or base64 of little-endian float32") from error


def check_metadata(value: dict[str, Any]) -> dict[str, Any]:
    """Refuse metadata that could not be read back, or that is too large: it is for facts, not for files."""
    if fault := find_metadata_fault(value):
        raise ValueError(fault)
    return value


def check_name(value: str) -> str:
    """Refuse a name that is too long, or with half of a surrogate pair, which no response could carry."""
    if not is_text(value, MAX_NAME):
        raise ValueError(f"must be valid text of at most {MAX_NAME} characters")
    return value


class Base64Photo(BaseModel):
    """A photo in JSON: the file's bytes as base64, alone or in a data URL."""

    model_config = ConfigDict(extra="forbid")

    base64: str = Field(json_schema_extra={"contentEncoding": "base64"})


def refuse_numbers(value: Any) -> Any:
    """Refuse what pydantic would take for seconds since 1970; any other value is returned unchanged."""
    if isinstance(value, int | float) or (isinstance(value, str) and not TIME.match(value)):
        raise ValueError("is no time such as 2026-11-18T09:00:00Z")
    return value


Time = Annotated[AwareDatetime, BeforeValidator(refuse_numbers)]
Photo = Annotated[bytes, BeforeValidator(read_photo, json_schema_input_type=Base64Photo)]
Similarity = Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False)]
TargetRate = Annotated[float, Field(ge=LOWEST_RATE, lt=1, allow_inf_nan=False)]
Id = Annotated[str, Field(pattern=ID_PATTERN, max_length=ID_LENGTH)]
CalibrationName = Annotated[
    str,
    Field(pattern=r"^[A-Za-z0-9._~-]{1,128}(/[A-Za-z0-9._~-]{1,128})?$", examples=["sface-2021dec/lfw-dev"]),
]
Name = Annotated[str, Field(max_length=MAX_NAME), AfterValidator(check_name)]
Metadata = Annotated[dict[str, Any], BeforeValidator(read_json_text), AfterValidator(check_metadata)]
Numbers = Annotated[
    list[float], Field(max_length=MAX_NUMBERS), BeforeValidator(read_numbers), WithJsonSchema(NUMBERS_SCHEMA)
]
FacePolicy = Literal["prominent", "largest", "only", "all"]
OnePolicy = Literal["prominent", "largest", "only"]


class Request(BaseModel):
    """What a client sends; a field that nobody knows is an error, not a surprise."""

    model_config = ConfigDict(extra="forbid")


class Response(BaseModel):
    """What a client gets, read off a value of the model."""

    model_config = ConfigDict(from_attributes=True)


class Probe(Request):
    """A photo or an embedding."""

    image: Photo | None = Field(None, description="The photo in question.")
    embedding: Numbers | None = Field(None, description="An embedding instead of a photo, made by `model`.")
    model: str | None = Field(None, description="The model that made the embedding.")

    @model_validator(mode="after")
    def need_one_of_them(self) -> "Probe":
        """Refuse a probe with both an image and an embedding, or with neither."""
        if (self.image is None) == (self.embedding is None):
            raise ValueError("send image or embedding, one of them")
        return self

    def to_probe(self, recogniser: Bundle) -> bytes | Embedding:
        """The photo, or the embedding once it is checked against `recogniser`."""
        if self.image is not None:
            return self.image
        return accept_embedding(recogniser, self.embedding or [], self.model)


class Box(Response):
    """In pixels of the upright image."""

    left: float
    top: float
    width: float
    height: float


class Quality(Response):
    """How fit a face is for comparison."""

    score: float = Field(description="From 0 to 1, the worst of the measures.")
    sharpness: float
    brightness: float
    yaw: float = Field(description="Degrees by which the head is turned, estimated from the landmarks.")
    size: float = Field(description="Pixels of the box's shorter side.")
    issues: tuple[str, ...] = Field(description="small, blurred, dark, overexposed, turned")


class Face(Response):
    """A face in a photo."""

    box: Box
    landmarks: tuple[tuple[float, float], ...] = Field(
        description="Eyes, nose, mouth corners; image-left first."
    )
    score: float
    quality: Quality
