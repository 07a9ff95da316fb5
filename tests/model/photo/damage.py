"""Photos with random damage, decoded."""

import numpy as np

from sameface.model.errors import SamefaceError
from sameface.model.photo.image import ImageLimits, decode_image

OUTCOMES = {"RGB", "unreadable_image", "unsupported_image", "image_too_large"}


def decode_damaged(photo: bytes, times: int) -> set[str]:
    """What comes of a photo with three random bytes of it changed: modes of images, codes of errors."""
    random = np.random.default_rng(1)
    outcomes = set()
    for _ in range(times):
        content = bytearray(photo)
        for place in random.integers(0, len(content), 3):
            content[place] = random.integers(256)
        try:
            outcomes.add(decode_image(bytes(content), ImageLimits()).mode)
        except SamefaceError as error:
            outcomes.add(error.code)
    return outcomes
