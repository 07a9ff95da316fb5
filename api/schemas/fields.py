"""The shapes of requests and responses, with the example that the documentation shows of each."""

import base64
import binascii
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from sameface.model.bundles.bundle import Bundle
from sameface.model.faces import EmbeddedFace
from sameface.model.runtime.session_pool import SessionPool
from sameface.model.verify import Look

PHOTO_SCHEMA = {
    "type": "object",
    "properties": {
        "base64": {"type": "string", "contentEncoding": "base64", "example": "/9j/4AAQSkZJRgABAQ..."}
    },
    "required": ["base64"],
}


def read_photo(value: Any) -> Any:
    """A photo's bytes: as they are from a form, from base64 in JSON."""
    if isinstance(value, bytes):
        return value
    if not isinstance(value, dict) or set(value) != {"base64"} or not isinstance(value["base64"], str):
        raise ValueError('an image is sent as a file part, or in JSON as {"base64": "..."}')
    try:
        return base64.b64decode(value["base64"], validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError("the base64 is not valid") from error


Photo = Annotated[bytes, BeforeValidator(read_photo), WithJsonSchema(PHOTO_SCHEMA)]
Similarity = Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False)]
Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9._~-]{1,128}$")]
CalibrationName = Annotated[
    str,
    Field(pattern=r"^[A-Za-z0-9._~-]{1,128}(/[A-Za-z0-9._~-]{1,128})?$", examples=["sface-2021dec/lfw-dev"]),
]
Rate = Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]
FacePolicy = Literal["prominent", "largest", "only", "all"]
OnePolicy = Literal["prominent", "largest", "only"]


class Request(BaseModel):
    """What a client sends; a field that nobody knows is an error, not a surprise."""

    model_config = ConfigDict(extra="forbid")


class VerifyRequest(Request):
    """A photo, what it is compared with, and how sure the answer must be."""

    probe: Photo = Field(description="The photo in question.")
    reference: Photo | None = Field(None, description="The photo it is compared with.")
    collection: Id | None = Field(None, description="Instead of a reference: the collection of `person_id`.")
    person_id: Id | None = Field(None, description="The enrolled person that the probe is compared with.")
    faces: OnePolicy = Field("prominent", description="Which face of a photo to take.")
    threshold: Similarity | None = Field(None, description="The similarity from which it is the same person.")
    target_fmr: Rate | None = Field(
        None, description="The false match rate to decide at, instead of a threshold."
    )
    extrapolate: bool = Field(False, description="Allow a rate beyond what the calibration's data supports.")
    min_quality: float = Field(0.0, ge=0, le=1, description="Refuse a face of a lower quality score.")

    @model_validator(mode="after")
    def refuse_two_rules(self) -> "VerifyRequest":
        """A threshold and a rate are two answers to one question."""
        if self.threshold is not None and self.target_fmr is not None:
            raise ValueError("send threshold or target_fmr, not both")
        return self

    @model_validator(mode="after")
    def need_one_reference(self) -> "VerifyRequest":
        """Either a photo or an enrolled person."""
        enrolled = (self.collection is not None, self.person_id is not None)
        if enrolled not in ((False, False), (True, True)) or any(enrolled) == (self.reference is not None):
            raise ValueError("send reference, or collection and person_id")
        return self


class DetectRequest(Request):
    """A photo."""

    image: Photo = Field(description="The photo to look for faces in.")
    faces: FacePolicy = Field("all", description="Which faces to answer.")


class EmbedRequest(DetectRequest):
    """A photo, and how to write the embeddings."""

    encoding: Literal["float", "base64"] = Field(
        "float", description="A list of numbers, or base64 of little-endian float32."
    )


class Response(BaseModel):
    """What a client gets, read off a value of the model."""

    model_config = ConfigDict(from_attributes=True)


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


class FaceWithEmbedding(Face):
    """A face and its unit embedding."""

    embedding: list[float] | str

    @classmethod
    def from_face(cls, face: EmbeddedFace, encoding: str) -> "FaceWithEmbedding":
        """The face with its embedding written as asked."""
        little_endian = face.embedding.values.astype("<f4")
        embedding = (
            base64.b64encode(little_endian.tobytes()).decode()
            if encoding == "base64"
            else little_endian.tolist()
        )
        return cls(**dict(Face.model_validate(face)), embedding=embedding)


class VerifySide(Response):
    """What was seen in one of the two photos."""

    faces_found: int
    face: Face


class EnrolledSide(Response):
    """The enrolled face that the probe was compared with."""

    person_id: str
    face_id: str


class DetectResponse(Response):
    """The faces in a photo, most prominent first."""

    faces: list[Face]
    faces_found: int = Field(description="Also those that `faces` or the server's limit left out.")
    timings_ms: dict[str, float]


class EmbedResponse(Response):
    """The faces in a photo with their embeddings."""

    model: str
    faces: list[FaceWithEmbedding]
    faces_found: int
    timings_ms: dict[str, float]

    @classmethod
    def from_look(cls, look: Look[EmbeddedFace], bundle: Bundle, encoding: str) -> "EmbedResponse":
        """The answer to a look at a photo."""
        faces = [FaceWithEmbedding.from_face(face, encoding) for face in look.faces]
        name = bundle.contract.name
        return cls(model=name, faces=faces, faces_found=look.faces_found, timings_ms=look.timings_ms)


class VerifyResponse(Response):
    """Whether two photos show the same person, and all that the answer rests on."""

    same_person: bool
    similarity: float = Field(description="The cosine of the two embeddings, higher is closer.")
    threshold: float
    target_fmr: float | None
    estimated_fmr: float | None = Field(
        description="The false match rate if the threshold stood at this similarity; unless `extrapolate`"
        " was sent, never below the lowest rate that the calibration's data supports."
    )
    extrapolated: bool = Field(
        description="The threshold or the estimate is beyond what the calibration's data supports."
    )
    calibration: str | None
    model: str
    probe: VerifySide
    reference: VerifySide | EnrolledSide
    timings_ms: dict[str, float] = Field(
        description="Work per stage, both photos added up; `total` is the time on the clock."
    )


class LoadedModel(Response):
    """A network that the server runs."""

    name: str
    kind: str
    dimension: int | None
    published_threshold: float | None
    calibration: str | None
    licence: str
    source: str
    sha256: str
    identity: str = Field(
        description="The hash of file and contract, to which galleries and calibrations bind."
    )
    device: str
    provider: str

    @classmethod
    def from_bundle(cls, bundle: Bundle, runtime: SessionPool) -> "LoadedModel":
        """What a bundle says of itself, and where it runs."""
        return cls(**bundle.describe(), device=runtime.device, provider=runtime.provider)


class ModelList(Response):
    """The networks that the server runs."""

    items: list[LoadedModel]
    next_cursor: None = None


class Live(Response):
    """The process answers."""

    status: Literal["alive"] = "alive"


class Ready(Response):
    """The networks are warm; what they run on."""

    status: Literal["ready"] = "ready"
    device: str
    provider: str
    recognizer: str
    detector: str
