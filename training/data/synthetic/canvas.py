"""A canvas on which shapes of a turned head are painted, and land in an aligned crop."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from sameface.model.bundles.published import ARCFACE_TEMPLATE
from sameface.model.faces import Point
from sameface.model.photo.align import fit_similarity
from sameface.training.data.crop import CROP_SIDE

Shape: TypeAlias = NDArray[np.complex128]  # points x + iy, in pixels of the crop, from between the eyes
Depth: TypeAlias = float | NDArray[np.float64]  # of a shape before the eyes, in the same pixels
Colour: TypeAlias = tuple[int, int, int]

SCALE = 2  # drawn larger and averaged down, so that edges are smooth
STEPS = np.linspace(-1, 1, 13)
ANGLES = np.linspace(0, 2 * np.pi, 40, endpoint=False)


def curve(width: float, bulge: float) -> Shape:
    """A parabola from -width to width that rises by `bulge`; down is positive."""
    return width * STEPS + 1j * bulge * (1 - STEPS**2)


def between(upper: Shape, lower: Shape) -> Shape:
    """The outline of what lies between two curves."""
    return np.concatenate((upper, lower[::-1]))


def oval(width: float, top: float, bottom: float, roundness: float = 2) -> Shape:
    """A closed outline with these reaches from its centre; the lower half is square for a large roundness."""
    cosine, sine = np.cos(ANGLES), np.sin(ANGLES)
    power = 2 / np.where(sine > 0, roundness, 2)
    x = width * np.sign(cosine) * np.abs(cosine) ** power
    y = np.where(sine > 0, bottom, top) * np.sign(sine) * np.abs(sine) ** power
    return x + 1j * y


def mirror(shape: Shape, side: int) -> Shape:
    """The shape for the image-right side, 1, or for the left, -1."""
    return side * shape.real + 1j * shape.imag


def shade(colour: Colour, factor: float) -> Colour:
    """The colour darker, or lighter for a factor above 1."""
    red, green, blue = (min(255, round(part * factor)) for part in colour)
    return red, green, blue


class Canvas:
    """An image, and the way from a person's own space to it: the head's turn, then the alignment."""

    def __init__(self, backdrop: Image.Image, yaw: float, nod: float) -> None:
        self.image = backdrop.resize((CROP_SIDE * SCALE, CROP_SIDE * SCALE), Image.Resampling.BILINEAR)
        self.draw = ImageDraw.Draw(self.image)
        self.cos, self.sin, self.sin_nod = float(np.cos(yaw)), float(np.sin(yaw)), float(np.sin(nod))
        self.slope, self.shift = complex(1), complex(0)

    def align(self, landmarks: Shape, depths: Depth, turn: complex, move: complex) -> None:
        """Bring five landmarks to the template as the server would, except for a small turn and move."""
        points = to_points(self.rotate(landmarks, depths))
        slope, shift = fit_similarity(points, ARCFACE_TEMPLATE)
        centre = complex(*np.mean(ARCFACE_TEMPLATE, axis=0))
        self.slope = slope * turn
        self.shift = (shift - centre) * turn + centre + move

    def rotate(self, shape: Shape, depth: Depth) -> Shape:
        """What a turn and a nod of the head make of a shape."""
        return shape.real * self.cos + depth * self.sin + 1j * (shape.imag + depth * self.sin_nod)

    def place(self, shape: Shape, depth: Depth) -> list[Point]:
        """Where a shape lies in the crop."""
        return to_points(self.slope * self.rotate(shape, depth) + self.shift)

    def fill(self, shape: Shape, depth: Depth, colour: Colour) -> None:
        """Paint the inside of a shape."""
        self.draw.polygon(self.enlarge(shape, depth), fill=colour)

    def trace(self, shape: Shape, depth: Depth, colour: Colour, width: float) -> None:
        """Draw along a shape with a pen of this width."""
        self.draw.line(self.enlarge(shape, depth), fill=colour, width=round(width * SCALE), joint="curve")

    def enlarge(self, shape: Shape, depth: Depth) -> list[Point]:
        """Where a shape lies on the image, whose pixel centres are at whole numbers."""
        return [((x + 0.5) * SCALE - 0.5, (y + 0.5) * SCALE - 0.5) for x, y in self.place(shape, depth)]

    def finish(self) -> Image.Image:
        """The crop."""
        return self.image.reduce(SCALE)


def to_points(shape: Shape) -> list[Point]:
    """Complex numbers as pairs."""
    return list(zip(shape.real.tolist(), shape.imag.tolist(), strict=True))
