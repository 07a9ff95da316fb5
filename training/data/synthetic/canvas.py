"""A canvas that paints shapes of a turned head into an aligned crop."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from sameface.model.bundles.published import ARCFACE_TEMPLATE
from sameface.model.faces import Point
from sameface.model.photo.align import fit_similarity
from sameface.training.data.crop import CROP_SIDE

Shape: TypeAlias = NDArray[np.complex128]  # points x + iy in pixels of the crop, 0 between the eyes
Depth: TypeAlias = float | NDArray[np.float64]  # of points in front of the eyes, in the same pixels
Colour: TypeAlias = tuple[int, int, int]

SCALE = 2  # shapes are drawn larger and averaged down, for smooth edges
STEPS = np.linspace(-1, 1, 13)
ANGLES = np.linspace(0, 2 * np.pi, 40, endpoint=False)


def curve(width: float, bulge: float) -> Shape:
    """A parabola from -width to width whose middle is `bulge` lower."""
    return width * STEPS + 1j * bulge * (1 - STEPS**2)


def between(upper: Shape, lower: Shape) -> Shape:
    """The closed outline between two curves."""
    return np.concatenate((upper, lower[::-1]))


def oval(width: float, top: float, bottom: float, squareness: float = 2) -> Shape:
    """A closed outline that extends `width`, `top` and `bottom` from 0; `squareness` 2 is an ellipse."""
    cosine, sine = np.cos(ANGLES), np.sin(ANGLES)
    power = 2 / np.where(sine > 0, squareness, 2)
    x = width * np.sign(cosine) * np.abs(cosine) ** power
    y = np.where(sine > 0, bottom, top) * np.sign(sine) * np.abs(sine) ** power
    return x + 1j * y


def mirror(shape: Shape, side: int) -> Shape:
    """The shape for the right side of the image, `side` 1, or for the left, -1."""
    return side * shape.real + 1j * shape.imag


def shade(colour: Colour, factor: float) -> Colour:
    """The colour darker by a factor below 1, or lighter by one above 1."""
    red, green, blue = (min(255, round(part * factor)) for part in colour)
    return red, green, blue


class Canvas:
    """An image, and the transform from a person's shapes to it: the turn of the head, then the alignment."""

    def __init__(self, backdrop: Image.Image, yaw: float, nod: float) -> None:
        self.image = backdrop.resize((CROP_SIDE * SCALE, CROP_SIDE * SCALE), Image.Resampling.BILINEAR)
        self.draw = ImageDraw.Draw(self.image)
        self.cos, self.sin, self.sin_nod = float(np.cos(yaw)), float(np.sin(yaw)), float(np.sin(nod))
        self.slope, self.shift = complex(1), complex(0)

    def align(self, landmarks: Shape, depths: Depth, turn: complex, move: complex) -> None:
        """Align the five landmarks as the server does, then add a small `turn` and `move`."""
        points = to_points(self.rotate(landmarks, depths))
        slope, shift = fit_similarity(points, ARCFACE_TEMPLATE)
        centre = complex(*np.mean(ARCFACE_TEMPLATE, axis=0))
        self.slope = slope * turn
        self.shift = (shift - centre) * turn + centre + move

    def rotate(self, shape: Shape, depth: Depth) -> Shape:
        """The shape after the yaw and nod of the head."""
        return shape.real * self.cos + depth * self.sin + 1j * (shape.imag + depth * self.sin_nod)

    def place(self, shape: Shape, depth: Depth) -> list[Point]:
        """The points of a shape in the crop."""
        return to_points(self.slope * self.rotate(shape, depth) + self.shift)

    def fill(self, shape: Shape, depth: Depth, colour: Colour) -> None:
        """Paint the inside of a shape."""
        self.draw.polygon(self.enlarge(shape, depth), fill=colour)

    def trace(self, shape: Shape, depth: Depth, colour: Colour, width: float) -> None:
        """Draw along a shape with a pen of this width."""
        self.draw.line(self.enlarge(shape, depth), fill=colour, width=round(width * SCALE), joint="curve")

    def enlarge(self, shape: Shape, depth: Depth) -> list[Point]:
        """The points of a shape on the enlarged image; pixel centres are at whole numbers."""
        return [((x + 0.5) * SCALE - 0.5, (y + 0.5) * SCALE - 0.5) for x, y in self.place(shape, depth)]

    def finish(self) -> Image.Image:
        """The crop: the image averaged down."""
        return self.image.reduce(SCALE)


def to_points(shape: Shape) -> list[Point]:
    """Complex numbers as (x, y)."""
    return list(zip(shape.real.tolist(), shape.imag.tolist(), strict=True))
