"""Faces as frozen values: each step of the path, from detection to embedding, adds its fields."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Pixels: TypeAlias = NDArray[np.uint8]  # (height, width, 3), RGB
Floats: TypeAlias = NDArray[np.float32]
Keys: TypeAlias = NDArray[np.int64]  # primary keys of faces or people in the store
Point: TypeAlias = tuple[float, float]
Photo: TypeAlias = bytes | Image.Image  # a file's content, or an image that was decoded elsewhere

UNIT = 1e-3  # the most by which the length of a unit embedding may differ from 1


class Value:
    """A value that an operation returns; `to_dict()` has the names and the shape of the HTTP API."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values that JSON can hold."""
        return {each.name: to_plain(getattr(self, each.name)) for each in fields(self)}  # type: ignore[arg-type]


def to_plain(value: Any) -> Any:
    """A value, or values in lists, mappings and dataclasses at any depth, as JSON can hold them."""
    if isinstance(value, Value):
        return value.to_dict()
    if is_dataclass(value):
        return {each.name: to_plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {key: to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return str(value) if isinstance(value, Path) else value


@dataclass(frozen=True, slots=True)
class Box(Value):
    """Where a face is, in pixels of the upright image."""

    left: float
    top: float
    width: float
    height: float

    @property
    def centre(self) -> Point:
        """The middle of the box."""
        return self.left + self.width / 2, self.top + self.height / 2

    @property
    def shorter_side(self) -> float:
        """The size of the face, in pixels of the side that has fewer."""
        return min(self.width, self.height)

    def divide(self, width: float, height: float) -> "Box":
        """The same box in shares of an image with these sides, from 0 to 1."""
        return Box(self.left / width, self.top / height, self.width / width, self.height / height)


@dataclass(frozen=True, slots=True)
class DetectedFace(Value):
    """A face as the detector reports it."""

    box: Box
    landmarks: tuple[Point, ...]  # eyes, nose, mouth corners; image-left first
    score: float

    def enlarge(self, scale: float) -> "DetectedFace":
        """The same face in an image whose sides are `scale` times as long."""
        box = Box(*(side * scale for side in (self.box.left, self.box.top, self.box.width, self.box.height)))
        return DetectedFace(box, tuple((x * scale, y * scale) for x, y in self.landmarks), self.score)


@dataclass(frozen=True, slots=True)
class Quality(Value):
    """How fit a face is for comparison, as a score from 0 to 1 and the measures behind it."""

    score: float
    sharpness: float
    brightness: float
    yaw: float
    size: float
    issues: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Face(DetectedFace):
    """A face as answers show it: box, landmarks, score and quality, without crop or embedding."""

    quality: Quality


@dataclass(frozen=True, slots=True, eq=False)
class AlignedFace(Face):
    """A face with its crop on the recogniser's template."""

    crop: Pixels

    def to_face(self) -> Face:
        """The face without its crop."""
        return Face(self.box, self.landmarks, self.score, self.quality)


@dataclass(frozen=True, slots=True, eq=False)
class Embedding:
    """A unit embedding, and the identity of the bundle that made it."""

    values: Floats  # (dimension,)
    identity: str
    normalised: bool = False  # a client sent it at another length than 1


@dataclass(frozen=True, slots=True, eq=False)
class EmbeddedFace(AlignedFace):
    """An aligned face with its embedding."""

    embedding: Embedding

    def without_crop(self) -> "FaceWithEmbedding":
        """The face and its embedding, as `embed` answers them."""
        return FaceWithEmbedding(self.box, self.landmarks, self.score, self.quality, self.embedding.values)


@dataclass(frozen=True, slots=True, eq=False)
class FaceWithEmbedding(Face):
    """A face in the answer of `embed`: with its embedding, without its crop."""

    embedding: Floats  # (dimension,), unit length


def are_unit(embeddings: Floats) -> NDArray[np.bool_]:
    """For each embedding (row), whether it is finite and has the length 1."""
    with np.errstate(invalid="ignore"):
        lengths = np.linalg.norm(embeddings.astype(np.float64), axis=1)
    close: NDArray[np.bool_] = np.abs(lengths - 1) <= UNIT  # False for NaN
    return close
