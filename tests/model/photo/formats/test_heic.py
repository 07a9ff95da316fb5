"""HEIC, as iPhones write it: read within the same limits, or refused with the extra that reads it."""

import struct
import sys

import pytest
from PIL import Image

from sameface.model.errors import ImageTooLarge, SamefaceError, UnreadableImage, UnsupportedImage
from sameface.model.photo.image import ImageLimits, decode_image
from tests.model.photo.damage import OUTCOMES, decode_damaged
from tests.pictures import draw_photo, encode

LIMITS = ImageLimits()


def heic(image: Image.Image, **options: object) -> bytes:
    return encode(image, "HEIF", **options)


def say_size(photo: bytes, width: int, height: int) -> bytes:
    """A HEIC whose header says this size, whatever its picture has."""
    content, place = bytearray(photo), 0
    while (place := content.find(b"ispe", place + 1)) > 0:
        content[place + 8 : place + 16] = struct.pack(">II", width, height)
    return bytes(content)


def test_transparency_is_white_and_the_first_picture_is_read() -> None:
    clear = Image.new("RGBA", (64, 64), (0, 0, 0, 0))
    assert decode_image(heic(clear), LIMITS).getpixel((5, 5)) == pytest.approx((255, 255, 255), abs=2)
    red, green = (Image.new("RGB", (64, 64), colour) for colour in ((200, 0, 0), (0, 200, 0)))
    several = heic(red, save_all=True, append_images=[green], primary_index=0)
    assert decode_image(several, LIMITS).getpixel((5, 5)) == pytest.approx((200, 0, 0), abs=16)


def test_without_the_extra_the_refusal_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    with pytest.raises(UnsupportedImage, match=r"sameface\[heic\]"):
        decode_image(heic(Image.new("RGB", (64, 64))), LIMITS)


def test_too_many_pixels_are_refused_by_the_header() -> None:
    with pytest.raises(ImageTooLarge, match="64 x 64"):
        decode_image(heic(Image.new("RGB", (64, 64))), ImageLimits(max_pixels=1000))
    with pytest.raises(ImageTooLarge):
        decode_image(say_size(heic(Image.new("RGB", (64, 64))), 30_000, 30_000), LIMITS)


def test_a_picture_larger_than_its_header_says_is_not_decoded() -> None:
    with pytest.raises(UnreadableImage):
        decode_image(say_size(heic(Image.new("RGB", (2000, 2000))), 100, 100), LIMITS)


def test_a_picture_far_larger_than_the_first_is_refused() -> None:
    small, large = Image.new("RGB", (64, 64)), Image.new("RGB", (2000, 2000))
    several = heic(small, save_all=True, append_images=[large], primary_index=0)
    with pytest.raises(ImageTooLarge, match="than its header says"):
        decode_image(several, LIMITS)


def test_tiles_are_read_as_iphones_write_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pillow_heif.options.GRID_TILE_SIZE", 512)
    photo = heic(draw_photo(1, width=1300, height=900))
    assert b"grid" in photo
    assert decode_image(photo, LIMITS).size == (1300, 900)


@pytest.mark.parametrize("share", [0.02, 0.2, 0.5, 0.9])
def test_a_heic_that_is_cut_is_unreadable(share: float) -> None:
    photo = heic(draw_photo(1))
    with pytest.raises(SamefaceError):
        decode_image(photo[: int(len(photo) * share)], LIMITS)


@pytest.mark.filterwarnings("ignore")
def test_damage_anywhere_is_a_picture_or_a_refusal() -> None:
    assert decode_damaged(heic(draw_photo(1).resize((96, 64)), quality=40), 300) <= OUTCOMES


def test_a_film_is_no_photo() -> None:
    with pytest.raises(UnsupportedImage, match="film"):
        decode_image(b"\0\0\0\x18ftypisom\0\0\0\0isommp42" + bytes(100), LIMITS)
