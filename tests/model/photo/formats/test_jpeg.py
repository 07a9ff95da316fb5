"""Small JPEGs are decoded in one step, to the pixels that Pillow has."""

import io

import numpy as np
import pytest
from PIL import Image

from sameface.model.photo import image as decoding
from sameface.model.photo.formats.jpeg import choose_scale, decode_in_one_step, read_size
from sameface.model.photo.image import ImageLimits, decode_by_pillow, decode_coarsely, decode_small_jpeg
from tests.attack.crafted_photos import add_scans
from tests.pictures import encode

LIMITS = ImageLimits()


def draw_noise(width: int, height: int) -> Image.Image:
    """Noise that is smooth enough for a JPEG to keep."""
    coarse = np.random.default_rng(0).integers(0, 256, (height // 4, width // 4, 3), np.uint8)
    return Image.fromarray(coarse).resize((width, height))


@pytest.mark.parametrize("size", [(250, 250), (641, 479), (1281, 303), (90, 1400)])
@pytest.mark.parametrize("subsampling", [0, 1, 2])
@pytest.mark.parametrize("progressive", [False, True])
def test_the_pixels_and_the_scale_are_those_of_pillow(
    size: tuple[int, int], subsampling: int, progressive: bool
) -> None:
    photo = encode(draw_noise(*size), "JPEG", subsampling=subsampling, progressive=progressive)
    for side in (640, None):
        pixels, scale = decode_small_jpeg(photo, LIMITS, side)
        expected, expected_scale = decode_by_pillow(photo, LIMITS, side)
        assert scale == expected_scale
        np.testing.assert_array_equal(pixels, expected)


def turned() -> bytes:
    exif = Image.Exif()
    exif[0x0112] = 6
    return encode(draw_noise(64, 48), "JPEG", exif=exif.tobytes())


def put_first(photo: bytes, marker: int, content: bytes) -> bytes:
    """The JPEG with a segment more before all others."""
    segment = bytes([0xFF, marker]) + (len(content) + 2).to_bytes(2) + content
    return photo[:2] + segment + photo[2:]


THUMBNAIL = b"JFXX\0\x10" + encode(draw_noise(16, 16), "JPEG")


@pytest.mark.parametrize(
    "photo",
    [
        turned(),
        put_first(turned(), 0xFE, b"a comment with \xff\xda in it"),
        put_first(turned(), 0xE0, THUMBNAIL),
        put_first(turned(), 0xE2, b"ICC_PROFILE\0\1\1" + b"\xff\xda" * 40),
        turned()[:2] + b"\xff" * 3 + turned()[2:],
        encode(draw_noise(64, 48), "JPEG", xmp=b"<x:xmpmeta tiff:Orientation='6'/>"),
        encode(draw_noise(64, 48).convert("L"), "JPEG"),
        encode(draw_noise(64, 48).convert("CMYK"), "JPEG"),
        encode(draw_noise(2400, 1800), "JPEG"),
        add_scans(encode(draw_noise(640, 480), "JPEG", progressive=True), 20),
        encode(draw_noise(64, 48), "PNG"),
        b"\xff\xd8\xff",
        b"",
    ],
    ids=[
        "turned",
        "comment",
        "thumbnail",
        "profile",
        "fill bytes",
        "XMP",
        "grey",
        "inks",
        "large",
        "many scans",
        "PNG",
        "signature",
        "empty",
    ],
)
def test_what_is_rare_or_needs_care_is_left_to_pillow(photo: bytes) -> None:
    assert read_size(photo) is None


@pytest.mark.parametrize("cut", [4, 20, 300])
def test_a_header_without_end_is_left_to_pillow(cut: int) -> None:
    assert read_size(encode(draw_noise(64, 48), "JPEG")[:cut]) is None


def test_what_a_segment_holds_neither_ends_the_headers_nor_turns_the_photo() -> None:
    upright = put_first(encode(draw_noise(64, 48), "JPEG"), 0xFE, b"\xff\xda \xff\xe1")
    assert read_size(upright) == (64, 48)
    sideways = put_first(turned(), 0xE0, THUMBNAIL)
    assert decode_coarsely(sideways, LIMITS, 640)[0].shape[:2] == (64, 48)


def test_a_damaged_file_is_left_to_pillow() -> None:
    photo = encode(draw_noise(64, 48), "JPEG")
    assert decode_in_one_step(photo, (64, 48), 1) is not None
    assert decode_in_one_step(photo[: len(photo) // 2], (64, 48), 1) is None


def test_an_ordinary_portrait_never_reaches_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    photo = encode(draw_noise(250, 250), "JPEG")
    expected = np.asarray(Image.open(io.BytesIO(photo)))
    monkeypatch.setattr(decoding, "decode_by_pillow", lambda *_: pytest.fail("Pillow was asked"))
    np.testing.assert_array_equal(decode_coarsely(photo, LIMITS, 640)[0], expected)


@pytest.mark.parametrize(
    ("size", "scale"),
    [((1279, 800), 1), ((1280, 800), 2), ((2559, 1440), 2), ((2560, 1440), 4), ((900, 9000), 8), ((1, 1), 1)],
)
def test_the_longer_side_keeps_its_pixels(size: tuple[int, int], scale: int) -> None:
    assert choose_scale(size, 640) == scale
    assert choose_scale(size, None) == 1
