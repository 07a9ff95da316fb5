"""Blends two people's crops into a face of nobody, for a teacher to describe."""

import numpy as np
from numpy.typing import NDArray

from sameface.model.faces import Pixels
from sameface.training.data.crop import CROP_SIDE

FULL = 1 << 8  # the weight of a crop that hides the other; times a byte it still fits 16 bits
SMALLEST_SHARE = 0.35  # of either crop: with less of it, the blend is the other person's face
EDGE_PIXELS = 3.0  # in which one crop gives way to the other where they meet


def blend(first: Pixels, second: Pixels, random: np.random.Generator) -> Pixels:
    """Two crops as one: the first shines through the second, or lies left of it, or above it."""
    weights = draw_weights(random)
    blended: Pixels = ((first * weights + second * (FULL - weights)) >> 8).astype(np.uint8)
    return blended


def draw_weights(random: np.random.Generator) -> NDArray[np.uint16]:
    """What the first crop weighs at each of its bytes, (112 or 1, 112 or 1, 3 or 1)."""
    share = random.uniform(SMALLEST_SHARE, 1 - SMALLEST_SHARE)
    fading = 1 / (1 + np.exp((np.arange(CROP_SIDE) - share * CROP_SIDE) / EDGE_PIXELS))  # (112,)
    everywhere, above = np.full((1, 1, 1), share), fading.reshape(-1, 1, 1)
    left = np.repeat(fading, 3).reshape(1, -1, 3)  # for each colour: a row at a time is faster than a pixel
    weights = (everywhere, left, above)[random.integers(3)]
    return np.round(FULL * weights).astype(np.uint16)
