"""What a photo shows, as values that do not change: each step of the path adds its part."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Pixels: TypeAlias = NDArray[np.uint8]  # (height, width, 3), RGB
Floats: TypeAlias = NDArray[np.float32]
Keys: TypeAlias = NDArray[np.int64]  # of faces or people in the store
Point: TypeAlias = tuple[float, float]

UNIT = 1e-3  # how far from 1 the length of a unit embedding may be


@dataclass(frozen=True, slots=True)
class Box:
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
        """The measure of a face's size: it is the lack of pixels that hurts."""
        return min(self.width, self.height)


@dataclass(frozen=True, slots=True)
class DetectedFace:
    """A face as the detector reports it."""

    box: Box
    landmarks: tuple[Point, ...]  # eyes, nose, mouth corners; image-left first
    score: float

    def enlarge(self, scale: float) -> "DetectedFace":
        """The same face in an image so many times as large."""
        box = Box(*(side * scale for side in (self.box.left, self.box.top, self.box.width, self.box.height)))
        return DetectedFace(box, tuple((x * scale, y * scale) for x, y in self.landmarks), self.score)


@dataclass(frozen=True, slots=True)
class Quality:
    """How fit a face is for comparison, as a score from 0 to 1 and the measures behind it."""

    score: float
    sharpness: float
    brightness: float
    yaw: float
    size: float
    issues: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class AlignedFace(DetectedFace):
    """A detected face with its crop on the template and its quality."""

    crop: Pixels
    quality: Quality


@dataclass(frozen=True, slots=True, eq=False)
class Embedding:
    """A unit embedding, and the identity of the bundle that made it."""

    values: Floats  # (dimension,)
    identity: str
    normalised: bool = False  # it was brought at another length


@dataclass(frozen=True, slots=True, eq=False)
class EmbeddedFace(AlignedFace):
    """An aligned face with its embedding."""

    embedding: Embedding


def are_unit(embeddings: Floats) -> NDArray[np.bool_]:
    """Whether each embedding (row) is finite and has the length 1."""
    with np.errstate(invalid="ignore"):
        lengths = np.linalg.norm(embeddings.astype(np.float64), axis=1)
    close: NDArray[np.bool_] = np.abs(lengths - 1) <= UNIT  # never so for what is not a number
    return close
