"""A TIFF's first image is decoded, and its directory cannot make that cost more than its pixels do."""

import struct

import numpy as np
import pytest
from PIL import Image

from sameface.model.errors import ImageTooLarge, SamefaceError, UnreadableImage, UnsupportedImage
from sameface.model.photo.image import ImageLimits, decode_image
from tests.attack.crafted_photos import (
    ANYTHING,
    LONG,
    NUMBER,
    endless_tiff,
    tiff,
    tiff_of_a_tile,
    tiff_of_one_strip,
    tiff_of_tags,
)
from tests.model.photo.damage import OUTCOMES, decode_damaged
from tests.pictures import draw_photo, encode

LIMITS = ImageLimits()
PHOTO = draw_photo(1)


@pytest.mark.parametrize("compression", [None, "tiff_lzw", "tiff_adobe_deflate", "tiff_deflate", "packbits"])
@pytest.mark.parametrize("options", [{}, {"strip_size": 1000}, {"tiffinfo": {322: 64, 323: 64}}])
def test_strips_and_tiles_of_every_lossless_compression_are_read(
    compression: str | None, options: dict
) -> None:
    photo = encode(PHOTO, "TIFF", compression=compression, **options)
    assert np.array_equal(np.asarray(decode_image(photo, LIMITS)), np.asarray(PHOTO))


@pytest.mark.parametrize("order", ["<", ">"])
def test_both_orders_of_bytes_are_read(order: str) -> None:
    assert decode_image(tiff(order=order), LIMITS).getpixel((15, 1)) == (31, 31, 31)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr"])
def test_every_mode_shows_the_same(mode: str) -> None:
    grey = (
        Image.new("L", (32, 32), 255).convert("RGB").convert(mode)
        if mode != "1"
        else Image.new("1", (32, 32), 1)
    )
    assert decode_image(encode(grey, "TIFF"), LIMITS).getpixel((3, 3)) == pytest.approx(
        (255, 255, 255), abs=2
    )


def test_sixteen_bits_keep_the_upper_eight() -> None:
    picture = Image.fromarray(np.full((32, 32), 0xC840, np.uint16))
    assert decode_image(encode(picture, "TIFF"), LIMITS).getpixel((0, 0)) == (0xC8, 0xC8, 0xC8)


def test_the_first_image_of_several_is_read() -> None:
    others = [Image.new("RGB", (9000, 9000)) for _ in range(2)]  # too large, but not the first
    photo = encode(PHOTO, "TIFF", save_all=True, append_images=others, compression="tiff_lzw")
    assert decode_image(photo, LIMITS).size == PHOTO.size
    assert decode_image(endless_tiff(), LIMITS).size == (16, 16)


@pytest.mark.parametrize("compression", ["jpeg", "tiff_ccitt", "group4", "lzma", "zstd"])
def test_other_compressions_are_refused_by_the_directory(compression: str) -> None:
    mode = "1" if compression in ("tiff_ccitt", "group4") else "RGB"
    with pytest.raises(UnsupportedImage, match="compressed"):
        decode_image(encode(PHOTO.convert(mode), "TIFF", compression=compression), LIMITS)


HOSTILE = {
    "a thousand tags of nine megabytes": (tiff_of_tags, ImageTooLarge),
    "2,500 strips that are one": (tiff_of_one_strip, UnreadableImage),
    "a tile of gigabytes": (tiff_of_a_tile, ImageTooLarge),
    "too many pixels": (lambda: tiff((256, LONG, 1, 8000), (257, LONG, 1, 8000)), ImageTooLarge),
    "far too many": (lambda: tiff((256, LONG, 1, 2**31), (257, LONG, 1, 2**31)), ImageTooLarge),
    "sides of a line": (lambda: tiff((256, LONG, 1, 40_000_000), (257, LONG, 1, 1)), ImageTooLarge),
    "millions of numbers": (lambda: tiff((40_000, LONG, 2_000_000, 8), data=bytes(8_000_000)), ImageTooLarge),
    "a tag longer than the file": (lambda: tiff((40_000, ANYTHING, 2**32 - 1, 8)), UnreadableImage),
    "strips without lengths": (lambda: tiff((279, LONG, 1, 0)), UnreadableImage),
    "strips beyond the end": (lambda: tiff((273, LONG, 1, 2**31)), UnreadableImage),
    "a width that is text": (lambda: tiff((256, ANYTHING, 1, 16), (322, ANYTHING, 1, 16)), SamefaceError),
    "a hundred channels": (lambda: tiff((277, NUMBER, 1, 100)), UnreadableImage),
    "no directory": (lambda: b"II*\0" + struct.pack("<I", 2**32 - 1), UnreadableImage),
    "a directory in its own header": (lambda: b"II*\0" + struct.pack("<I", 0), SamefaceError),
    "nothing": (lambda: b"II*\0", UnreadableImage),
    "a tag twice": (lambda: twice(tiff()), UnreadableImage),
}


def twice(content: bytes) -> bytes:
    """A TIFF whose second tag has the number of its first."""
    [start] = struct.unpack_from("<I", content, 4)
    return content[: start + 14] + content[start + 2 : start + 4] + content[start + 16 :]


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning", "ignore::UserWarning")
@pytest.mark.parametrize("name", HOSTILE)
def test_what_a_directory_asks_for_is_bounded(name: str) -> None:
    make, refusal = HOSTILE[name]
    with pytest.raises(refusal):
        decode_image(make(), LIMITS)


@pytest.mark.filterwarnings("ignore")
def test_damage_anywhere_is_a_picture_or_a_refusal() -> None:
    whole = encode(PHOTO.resize((48, 32)), "TIFF", compression="tiff_lzw")
    assert decode_damaged(whole, 500) <= OUTCOMES
