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
    image: Pixels, landmarks: Sequence[Point], template: Sequence[Point], size: tuple[int, int]
) -> Pixels:
    """The crop of `size` (width, height) in which the landmarks lie on the template."""
    a, b = fit_similarity(landmarks, template)
    part, a, b = cut_around_crop(image, a, b, size)
    # Pillow takes the inverse transform, crop to image, and puts the centre of a pixel at (0.5, 0.5).
    back = 1 / a
    half = complex(0.5, 0.5)
    shift = -b * back + half - half * back
    coefficients = (back.real, -back.imag, shift.real, back.imag, back.real, shift.imag)
    crop = part.transform(size, Image.Transform.AFFINE, coefficients, Image.Resampling.BILINEAR)
    return np.asarray(crop)  # (height, width, 3)


def cut_around_crop(
    image: Pixels, a: complex, b: complex, size: tuple[int, int]
) -> tuple[Image.Image, complex, complex]:
    """The part of the image under the crop, with the `a` and `b` that fit it.

    If the crop is at most half as large, the part is reduced by a whole factor: averaging comes first because
    bilinear sampling alone would skip most pixels of a large face.
    """
    corners = [(complex(x, y) - b) / a for x in (0, size[0]) for y in (0, size[1])]
    factor = max(1, floor(1 / abs(a)))
    margin = 2 if factor == 1 else 1  # the last pixel of the crop may lie between the last two of the part
    left, right = span([corner.real for corner in corners], image.shape[1], margin)
    top, bottom = span([corner.imag for corner in corners], image.shape[0], margin)
    part = Image.fromarray(image[top:bottom, left:right])
    if factor > min(part.size):
        factor = 1
    if factor > 1:
        part = part.reduce(factor)
    # The centre of pixel k of `part` is that of pixel left + k * factor + (factor - 1) / 2 of the image.
    origin = complex(left + (factor - 1) / 2, top + (factor - 1) / 2)
    return part, a * factor, a * origin + b


def span(places: Sequence[float], length: int, margin: int) -> tuple[int, int]:
    """The first pixel under `places`, and `margin` after the last, within a side of `length`; never empty."""
    first = min(max(0, floor(min(places))), length - 1)
    return first, max(first + 1, min(length, floor(max(places)) + margin))
