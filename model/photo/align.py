"""Turns, scales and shifts a face so that its landmarks lie on the bundle's template."""

from collections.abc import Sequence
from math import floor
from typing import NamedTuple

import numpy as np
from PIL import Image

from sameface.model.faces import Pixels, Point


class CropShape(NamedTuple):
    """Where a recogniser wants faces: the five landmarks on the crop, and the crop's width and height."""

    template: Sequence[Point]
    size: tuple[int, int]


def fit_similarity(source: Sequence[Point], target: Sequence[Point]) -> tuple[complex, complex]:
    """The turn-and-scale `a` and the shift `b` with a z + b closest to the target (least squares).

    A point is a complex number x + iy: multiplying by a complex number is just what a similarity
    transform without reflection does, so the fit is a regression with one complex slope.
    """
    z, w = ([complex(*point) for point in points] for points in (source, target))
    middle, aim = sum(z) / len(z), sum(w) / len(w)
    arms = [(point - middle).conjugate() for point in z]
    turned = sum(arm * (point - aim) for arm, point in zip(arms, w, strict=True))
    a = turned / sum((arm * arm.conjugate()).real for arm in arms)
    return a, aim - a * middle


def align_face(
    image: Image.Image, landmarks: Sequence[Point], template: Sequence[Point], size: tuple[int, int]
) -> Pixels:
    """The crop of `size` (width, height) in which the landmarks lie on the template."""
    a, b = fit_similarity(landmarks, template)
    image, a, b = shrink_around_crop(image, a, b, size)
    # Pillow takes the inverse transform, crop to image, and puts the centre of a pixel at (0.5, 0.5).
    back = 1 / a
    half = complex(0.5, 0.5)
    shift = -b * back + half - half * back
    coefficients = (back.real, -back.imag, shift.real, back.imag, back.real, shift.imag)
    crop = image.transform(size, Image.Transform.AFFINE, coefficients, Image.Resampling.BILINEAR)
    return np.asarray(crop)  # (height, width, 3)


def shrink_around_crop(
    image: Image.Image, a: complex, b: complex, size: tuple[int, int]
) -> tuple[Image.Image, complex, complex]:
    """The part of the image under the crop, reduced by a whole factor, with the `a` and `b` that fit it.

    Averaging comes first because bilinear sampling alone would skip most pixels of a large face.
    """
    factor = floor(1 / abs(a))
    if factor < 2:
        return image, a, b
    corners = [(complex(x, y) - b) / a for x in (0, size[0]) for y in (0, size[1])]
    left = max(0, floor(min(corner.real for corner in corners)))
    top = max(0, floor(min(corner.imag for corner in corners)))
    right = min(image.width, floor(max(corner.real for corner in corners)) + 1)
    bottom = min(image.height, floor(max(corner.imag for corner in corners)) + 1)
    if right - left < factor or bottom - top < factor:
        return image, a, b
    small = image.reduce(factor, box=(left, top, right, bottom))
    # The centre of pixel k of `small` is that of pixel left + k * factor + (factor - 1) / 2 of the image.
    origin = complex(left + (factor - 1) / 2, top + (factor - 1) / 2)
    return small, a * factor, a * origin + b
