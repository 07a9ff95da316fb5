"""Draws photos for `tests.networks`: a face is a green square, its red pattern says who it is."""

import io
from typing import Any

import numpy as np
import pillow_heif
from PIL import Image

from tests.networks import FACE_SIDE


def draw_photo(*people: int, width: int = 320, height: int = 240, noise: int = 0) -> Image.Image:
    """A photo of these people, side by side; none is an empty room."""
    random = np.random.default_rng(noise)
    pixels = np.zeros((height, width, 3), np.uint8)
    pixels[..., 0] = 90
    for place, person in enumerate(people):
        left, top = 48 + 80 * place, 96
        pattern = np.random.default_rng(person).integers(0, 2, (8, 8)) * 255
        face = np.zeros((FACE_SIDE, FACE_SIDE, 3), np.uint8)
        face[..., 0] = np.kron(pattern, np.ones((6, 6)))
        face[..., 1] = 255
        pixels[top : top + FACE_SIDE, left : left + FACE_SIDE] = face
    if noise:
        shaken = pixels.astype(int) + random.integers(-12, 13, pixels.shape)
        pixels = shaken.clip(0, 255).astype(np.uint8)
    return Image.fromarray(pixels)


def draw_speck() -> Image.Image:
    """A photo whose only face has twelve pixels."""
    pixels = np.zeros((240, 320, 3), np.uint8)
    pixels[80:88, 160:168, 2] = 255
    return Image.fromarray(pixels)


def encode(image: Image.Image, file_format: str = "PNG", **options: Any) -> bytes:
    """The image as bytes of a format."""
    if file_format == "HEIF":
        pillow_heif.register_heif_opener()
    buffer = io.BytesIO()
    image.save(buffer, file_format, **options)
    return buffer.getvalue()


def photo_of(*people: int, noise: int = 0) -> bytes:
    """A photo of these people as PNG."""
    return encode(draw_photo(*people, noise=noise))
