"""What callers may pass as a photo or as an embedding; numpy and Pillow are never imported here."""

import io
import os
import struct
import sys
import zlib
from array import array
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, TypeAlias

from sameface_client.errors import InvalidRequest, UnreadableImage, UnsupportedImage
from sameface_client.values import to_base64, write_floats

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray
    from PIL import Image

AnyPhoto: TypeAlias = "str | os.PathLike[str] | bytes | IO[bytes] | Image.Image | NDArray[np.uint8]"
AnyEmbedding: TypeAlias = "Sequence[float] | array[float] | NDArray[np.floating]"
AnyProbe: TypeAlias = "AnyPhoto | AnyEmbedding"
OneFace: TypeAlias = Literal["prominent", "largest", "only"]
WhichFaces: TypeAlias = Literal["prominent", "largest", "only", "all"]

PNG_MODES = ("1", "L", "LA", "I;16", "P", "RGB", "RGBA")


def to_file(photo: AnyPhoto) -> bytes:
    """The bytes to send: those of a file as they are, an image or an array of pixels as PNG."""
    if isinstance(photo, bytes):
        return photo
    if isinstance(photo, str | os.PathLike):
        return read_file(Path(photo).expanduser())
    if is_of(photo, "PIL.Image", "Image"):
        return encode_image(photo)
    if is_of(photo, "numpy", "ndarray"):
        return encode_pixels(photo)
    if hasattr(photo, "read"):
        content = photo.read()
        if isinstance(content, bytes):
            return content
        raise UnsupportedImage('The file was opened as text: open it with "rb".')
    raise UnsupportedImage(
        f"A photo is a path, bytes, a file, a PIL image or an array, and no {type(photo).__name__}."
    )


def is_of(value: Any, module: str, name: str) -> bool:
    """Whether `value` is of a class of a library that only the caller may have imported."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(value, getattr(loaded, name))


def read_file(path: Path) -> bytes:
    """The content of the file; a path that cannot be read raises `unreadable_image`."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise UnreadableImage(f"{path} cannot be read: {error.strerror}.") from error


def encode_image(image: Any) -> bytes:
    """A PIL image as PNG; its EXIF orientation goes with it."""
    written = io.BytesIO()
    exif = image.getexif()
    if image.mode not in PNG_MODES:
        image = image.convert("RGB")
    image.save(written, "PNG", compress_level=1, exif=exif)
    return written.getvalue()


def encode_pixels(pixels: Any) -> bytes:
    """An array of RGB or grey pixels as PNG, written here because Pillow may not be installed."""
    shape = pixels.shape
    grey, colour = len(shape) == 2, len(shape) == 3 and shape[2] == 3
    if str(pixels.dtype) != "uint8" or not (grey or colour) or not pixels.size:
        raise UnsupportedImage(
            "Pixels are an array of uint8 with the shape (height, width, 3) in RGB, or (height, width);"
            f" this one is {pixels.dtype} of {shape}."
        )
    height, width = shape[:2]
    rows = pixels.reshape(height, -1)
    unfiltered = b"".join(b"\0" + row.tobytes() for row in rows)  # a row begins with its filter, here none
    header = struct.pack(">IIBBBBB", width, height, 8, 2 if colour else 0, 0, 0, 0)
    chunks = (b"IHDR", header), (b"IDAT", zlib.compress(unfiltered, 1)), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(encode_chunk(*chunk) for chunk in chunks)


def encode_chunk(kind: bytes, content: bytes) -> bytes:
    """A chunk of a PNG file: length, kind, content and checksum."""
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def is_embedding(probe: AnyProbe) -> bool:
    """Whether a probe is an embedding: a list, a tuple, or an array of one dimension."""
    row = is_of(probe, "numpy", "ndarray") and probe.ndim == 1  # type: ignore[union-attr]
    return row or isinstance(probe, list | tuple | array)


def encode_embedding(embedding: AnyEmbedding) -> str:
    """An embedding as base64 of little-endian float32."""
    return to_base64(pack_embedding(embedding))


def pack_embedding(embedding: AnyEmbedding) -> bytes:
    """An embedding as little-endian float32."""
    try:
        return write_floats(array("f", embedding))
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidRequest(
            f"An embedding is a sequence of numbers that float32 can hold: {error}."
        ) from error
