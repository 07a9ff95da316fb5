"""Blends the crops of two people into a crop of nobody, for a teacher to embed."""

import numpy as np
from numpy.typing import NDArray

from sameface.model.faces import Pixels
from sameface.training.data.crop import CROP_SIDE

FULL = 1 << 8  # weight 1 in fixed point; times a byte it still fits 16 bits
SMALLEST_SHARE = 0.35  # of either crop: with less, the blend is still the other person
EDGE_PIXELS = 3.0  # width of the transition between the crops


def blend(first: Pixels, second: Pixels, random: np.random.Generator) -> Pixels:
    """Blend two crops: the first over the second, left of it, or above it, as `random` decides."""
    weights = draw_weights(random)
    blended: Pixels = ((first * weights + second * (FULL - weights)) >> 8).astype(np.uint8)
    return blended


def draw_weights(random: np.random.Generator) -> NDArray[np.uint16]:
    """The weight of the first crop, from 0 to FULL, (112 or 1, 112 or 1, 3 or 1)."""
    share = random.uniform(SMALLEST_SHARE, 1 - SMALLEST_SHARE)
    fading = 1 / (1 + np.exp((np.arange(CROP_SIDE) - share * CROP_SIDE) / EDGE_PIXELS))  # (112,)
    everywhere, above = np.full((1, 1, 1), share), fading.reshape(-1, 1, 1)
    left = np.repeat(fading, 3).reshape(1, -1, 3)  # per channel: whole rows multiply faster than pixels
    weights = (everywhere, left, above)[random.integers(3)]
    return np.round(FULL * weights).astype(np.uint16)
