"""What callers of `sameface.open()` may pass as a photo or as an embedding."""

import os
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from PIL import Image

from sameface.model.errors import UnsupportedImage
from sameface.model.faces import Photo
from sameface.model.photo.image import read_photo

if TYPE_CHECKING:
    from numpy.typing import NDArray

AnyPhoto: TypeAlias = "str | os.PathLike[str] | bytes | IO[bytes] | Image.Image | NDArray[np.uint8]"
AnyEmbedding: TypeAlias = "Sequence[float] | array[float] | NDArray[np.floating]"
AnyProbe: TypeAlias = "AnyPhoto | AnyEmbedding"
OneFace: TypeAlias = Literal["prominent", "largest", "only"]
WhichFaces: TypeAlias = Literal["prominent", "largest", "only", "all"]


def to_photo(photo: AnyPhoto) -> Photo:
    """Read the file of a path, or an open one; an array is RGB or grey pixels, bytes and images stay."""
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
    if isinstance(photo, str | os.PathLike):
        return read_photo(Path(photo).expanduser())
    if hasattr(photo, "read"):
        return read_open_photo(photo)
    raise UnsupportedImage(
        f"A photo is a path, bytes, a file, a PIL image or an array, and no {type(photo).__name__}."
    )


def read_open_photo(file: IO[bytes]) -> bytes:
    """The rest of an open file, which must have been opened for reading bytes."""
    content = file.read()
    if not isinstance(content, bytes):
        raise UnsupportedImage('The file was opened as text: open it with "rb".')
    return content


def is_embedding(probe: AnyProbe) -> bool:
    """Whether a probe is an embedding: a list, a tuple, or an array of one dimension."""
    return isinstance(probe, list | tuple | array) or (isinstance(probe, np.ndarray) and probe.ndim == 1)
