"""What callers of `sameface.open()` may pass as a photo or as an embedding."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from PIL import Image

from sameface.model.errors import UnsupportedImage
from sameface.model.faces import Photo
from sameface.model.photo.image import read_photo

if TYPE_CHECKING:
    from numpy.typing import NDArray

AnyPhoto: TypeAlias = "str | os.PathLike[str] | bytes | Image.Image | NDArray[np.uint8]"
AnyEmbedding: TypeAlias = "Sequence[float] | NDArray[np.floating]"
OneFace: TypeAlias = Literal["prominent", "largest", "only"]
WhichFaces: TypeAlias = Literal["prominent", "largest", "only", "all"]


def to_photo(photo: AnyPhoto) -> Photo:
    """Read the file of a path, return bytes and PIL images unchanged, take an array as RGB or grey pixels."""
    if isinstance(photo, bytes | Image.Image):
        return photo
    if isinstance(photo, np.ndarray):
        grey, colour = photo.ndim == 2, photo.ndim == 3 and photo.shape[2] == 3
        if photo.dtype != np.uint8 or not (grey or colour) or not photo.size:
            raise UnsupportedImage(
                "Pixels are an array of uint8 with the shape (height, width, 3) in RGB, or (height, width);"
                f" this one is {photo.dtype} of {photo.shape}."
            )
        return Image.fromarray(photo)
    return read_photo(Path(photo).expanduser())
