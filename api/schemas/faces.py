"""The schemas of /v1/detect and /v1/embed."""

import base64
from typing import Literal

from pydantic import Field

from sameface.api.schemas.fields import Face, FacePolicy, Photo, Request, Response
from sameface.model.faces import FaceWithEmbedding
from sameface.model.pipeline import PhotoEmbeddings


class DetectRequest(Request):
    """A photo."""

    image: Photo = Field(description="The photo to look for faces in.")
    faces: FacePolicy = Field("all", description="Which faces to answer.")


class EmbedRequest(DetectRequest):
    """A photo, and how to write the embeddings."""

    encoding: Literal["float", "base64"] = Field(
        "float", description="A list of numbers, or base64 of little-endian float32."
    )


class DetectResponse(Response):
    """The faces in a photo, most prominent first."""

    faces: list[Face]
    faces_found: int = Field(description="Also those that `faces` or the server's limit left out.")
    timings_ms: dict[str, float]


class EmbeddedFace(Face):
    """A face and its unit embedding."""

    embedding: list[float] | str

    @classmethod
    def from_face(cls, face: FaceWithEmbedding, encoding: str) -> "EmbeddedFace":
        """The face with its embedding in this `encoding`."""
        little_endian = face.embedding.astype("<f4")
        embedding = (
            base64.b64encode(little_endian.tobytes()).decode()
            if encoding == "base64"
            else little_endian.tolist()
        )
        return cls(**dict(Face.model_validate(face)), embedding=embedding)


class EmbedResponse(Response):
    """The faces in a photo with their embeddings."""

    model: str
    faces: list[EmbeddedFace]
    faces_found: int
    timings_ms: dict[str, float]

    @classmethod
    def from_embeddings(cls, found: PhotoEmbeddings, encoding: str) -> "EmbedResponse":
        """The response with embeddings in this `encoding`."""
        return cls(
            model=found.model,
            faces=[EmbeddedFace.from_face(face, encoding) for face in found.faces],
            faces_found=found.faces_found,
            timings_ms=found.timings_ms,
        )
