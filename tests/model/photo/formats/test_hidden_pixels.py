"""AVIF is read within the limits of its header, which its pictures cannot exceed unseen."""

import struct

import pytest
from PIL import Image

from sameface.model.errors import ImageTooLarge, SamefaceError, UnreadableImage, UnsupportedImage
from sameface.model.photo.formats.hidden_pixels import find_pictures, measure_picture
from sameface.model.photo.image import ImageLimits, decode_image
from tests.model.photo.damage import OUTCOMES, decode_damaged
from tests.pictures import draw_photo, encode

LIMITS = ImageLimits()


def avif(image: Image.Image, **options: object) -> bytes:
    return encode(image, "AVIF", speed=10, **options)


def say_size(photo: bytes, width: int, height: int) -> bytes:
    """An AVIF whose header says this size, whatever its picture has."""
    place = photo.index(b"ispe") + 8
    return photo[:place] + struct.pack(">II", width, height) + photo[place + 8 :]


@pytest.mark.parametrize("size", [(320, 240), (1, 1), (17, 513), (4000, 3000)])
@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L"])
def test_the_pictures_inside_are_measured(size: tuple[int, int], mode: str) -> None:
    photo = avif(Image.new(mode, size, 128 if mode == "L" else (1, 2, 3, 4)[: len(mode)]))
    measured = [measure_picture(picture) for picture in find_pictures(photo)]
    assert measured == [size[0] * size[1]] * (2 if mode == "RGBA" else 1)


def test_transparency_is_white() -> None:
    clear = avif(Image.new("RGBA", (64, 64), (0, 0, 0, 0)))
    assert decode_image(clear, LIMITS).getpixel((5, 5)) == pytest.approx((255, 255, 255), abs=2)


def test_a_picture_larger_than_its_header_says_is_refused() -> None:
    with pytest.raises(ImageTooLarge, match="than its header says"):
        decode_image(say_size(avif(Image.new("RGB", (3000, 3000))), 100, 100), LIMITS)


def test_too_many_pixels_are_refused_by_the_header() -> None:
    with pytest.raises(ImageTooLarge, match="64 x 64"):
        decode_image(avif(Image.new("RGB", (64, 64))), ImageLimits(max_pixels=1000))
    with pytest.raises(ImageTooLarge):
        decode_image(say_size(avif(Image.new("RGB", (64, 64))), 9_000, 9_000), LIMITS)


def test_an_animation_is_refused() -> None:
    frames = [Image.new("RGB", (64, 64), (shade, 0, 0)) for shade in (10, 200)]
    with pytest.raises(UnreadableImage):
        decode_image(avif(frames[0], save_all=True, append_images=frames[1:]), LIMITS)


def test_without_the_decoder_the_refusal_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("PIL.features.check", lambda _: False)
    with pytest.raises(UnsupportedImage, match="Pillow was built without it"):
        decode_image(avif(Image.new("RGB", (64, 64))), LIMITS)


def test_parts_that_overlap_are_refused() -> None:
    """Each of the two pictures has the whole file as its data."""
    photo = bytearray(avif(Image.new("RGBA", (64, 64), (1, 2, 3, 4))))
    place = photo.index(b"iloc") + 4
    entries = place + 8
    for number in range(2):
        at = entries + number * 14 + 6
        photo[at : at + 8] = struct.pack(">II", 0, len(photo))
    with pytest.raises(ValueError, match="overlap"):
        list(find_pictures(bytes(photo)))
    with pytest.raises(UnreadableImage):
        decode_image(bytes(photo), LIMITS)


@pytest.mark.parametrize("share", [0.02, 0.2, 0.5, 0.9])
def test_an_avif_that_is_cut_is_unreadable(share: float) -> None:
    photo = avif(draw_photo(1))
    with pytest.raises(SamefaceError):
        decode_image(photo[: int(len(photo) * share)], LIMITS)


@pytest.mark.filterwarnings("ignore")
def test_damage_anywhere_is_a_picture_or_a_refusal() -> None:
    assert decode_damaged(avif(draw_photo(1).resize((96, 64))), 500) <= OUTCOMES
