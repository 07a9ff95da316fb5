"""Bytes to an upright RGB image: what is read, and what is refused before it costs anything."""

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from sameface.model.errors import ImageTooLarge, UnreadableImage, UnsupportedImage
from sameface.model.photo.image import START_OF_SCAN, ImageLimits, PhotoFile, decode_image
from tests.attack.crafted_photos import add_scans
from tests.pictures import encode

LIMITS = ImageLimits()
RED, GREEN, BLUE, WHITE = (220, 30, 40), (20, 200, 60), (30, 50, 210), (250, 250, 250)
CORNERS = ((0, 0, RED), (1, 0, GREEN), (0, 1, BLUE), (1, 1, WHITE))  # column, row, colour
WIDTH, HEIGHT = 96, 64
ORIENTATION = 0x0112
LOSSY = 16  # per channel, after JPEG or lossy WebP
# How a camera that writes this orientation stored the upright image.
STORED = {
    1: None,
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}


def draw_corners() -> Image.Image:
    """A different colour in every quarter, so that every turn and flip shows."""
    image = Image.new("RGB", (WIDTH, HEIGHT))
    for column, row, colour in CORNERS:
        image.paste(colour, (column * WIDTH // 2, row * HEIGHT // 2, WIDTH, HEIGHT))
    return image


def assert_shows_corners(image: Image.Image, tolerance: int = LOSSY) -> None:
    assert image.mode == "RGB"
    assert image.size == (WIDTH, HEIGHT)
    for column, row, colour in CORNERS:
        found = image.getpixel((WIDTH // 4 + column * WIDTH // 2, HEIGHT // 4 + row * HEIGHT // 2))
        assert found == pytest.approx(colour, abs=tolerance)


def decode_plain(image: Image.Image, file_format: str = "PNG", **options: object) -> tuple[int, ...]:
    """The first pixel after encoding and decoding."""
    return decode_image(encode(image, file_format, **options), LIMITS).getpixel((0, 0))


def chunk(kind: bytes, content: bytes) -> bytes:
    checksum = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)


def png_with_header(width: int, height: int, bits: int, colour_type: int, rows: bytes) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, bits, colour_type, 0, 0, 0)
    chunks = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunks


@pytest.mark.parametrize("file_format", ["JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF", "HEIF", "AVIF"])
def test_a_format_is_known_by_its_content(file_format: str) -> None:
    assert_shows_corners(decode_image(encode(draw_corners(), file_format), LIMITS))


@pytest.mark.parametrize("orientation", STORED)
@pytest.mark.parametrize("file_format", ["JPEG", "PNG", "WEBP", "TIFF", "HEIF", "AVIF"])
def test_a_photo_is_upright_whichever_way_the_camera_was_held(file_format: str, orientation: int) -> None:
    how = STORED[orientation]
    stored = draw_corners() if how is None else draw_corners().transpose(how)
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    assert_shows_corners(decode_image(encode(stored, file_format, exif=exif.tobytes()), LIMITS))


def test_a_turned_palette_image_keeps_its_transparency() -> None:
    stored = Image.new("P", (2, 4), 1)
    stored.putpalette([9, 9, 9, *RED])
    stored.putpixel((0, 0), 0)
    exif = Image.Exif()
    exif[ORIENTATION] = 6
    image = decode_image(encode(stored, exif=exif.tobytes(), transparency=0), LIMITS)
    assert image.size == (4, 2)
    assert (image.getpixel((3, 0)), image.getpixel((0, 0))) == ((255, 255, 255), RED)


@pytest.mark.parametrize(
    ("cmyk", "rgb"),
    [
        ((0, 0, 0, 0), (255, 255, 255)),
        ((0, 255, 255, 0), (255, 0, 0)),
        ((255, 0, 0, 0), (0, 255, 255)),
        ((0, 0, 0, 255), (0, 0, 0)),
    ],
)
def test_printing_inks_become_their_colours(cmyk: tuple[int, ...], rgb: tuple[int, ...]) -> None:
    assert decode_plain(Image.new("CMYK", (16, 16), cmyk), "JPEG") == pytest.approx(rgb, abs=LOSSY)


@pytest.mark.parametrize("file_format", ["JPEG", "PNG", "BMP"])
def test_grey_has_three_equal_channels(file_format: str) -> None:
    red, green, blue = decode_plain(Image.new("L", (16, 16), 77), file_format)
    assert red == green == blue == pytest.approx(77, abs=1)


@pytest.mark.parametrize("file_format", ["PNG", "BMP"])
@pytest.mark.parametrize(("bit", "level"), [(0, 0), (1, 255)])
def test_one_bit_is_black_or_white(file_format: str, bit: int, level: int) -> None:
    assert decode_plain(Image.new("1", (16, 16), bit), file_format) == (level,) * 3


@pytest.mark.parametrize("file_format", ["PNG", "BMP"])
def test_a_palette_gives_its_colours(file_format: str) -> None:
    image = Image.new("P", (16, 16), 2)
    image.putpalette([*RED, *GREEN, *BLUE])
    assert decode_plain(image, file_format) == BLUE


@pytest.mark.parametrize(("entry", "colour"), [(0, (255, 255, 255)), (1, GREEN)])
def test_a_transparent_palette_entry_is_white(entry: int, colour: tuple[int, ...]) -> None:
    image = Image.new("P", (16, 16), entry)
    image.putpalette([*RED, *GREEN])
    assert decode_plain(image, transparency=0) == colour


def test_a_half_transparent_palette_entry_is_mixed_with_white() -> None:
    image = Image.new("P", (16, 16), 0)
    image.putpalette([255, 0, 0])
    assert decode_plain(image, transparency=bytes([128])) == pytest.approx((255, 127, 127), abs=1)


@pytest.mark.parametrize("level", [0, 255, 256, 32768, 65535])
def test_sixteen_bits_are_scaled_and_not_clipped(level: int) -> None:
    image = Image.fromarray(np.full((16, 16), level, np.uint16))
    assert decode_plain(image) == pytest.approx((level / 257,) * 3, abs=1)


def test_sixteen_bits_in_colour_are_scaled_too() -> None:
    row = b"\x00" + struct.pack(">HHH", 65535, 32896, 257)
    image = decode_image(png_with_header(1, 1, 16, 2, row), LIMITS)
    assert image.getpixel((0, 0)) == pytest.approx((255, 128, 1), abs=1)


@pytest.mark.parametrize(
    ("mode", "pixel", "colour"),
    [
        ("RGBA", (10, 20, 30, 0), (255, 255, 255)),
        ("RGBA", (10, 20, 30, 255), (10, 20, 30)),
        ("RGBA", (255, 0, 0, 128), (255, 127, 127)),
        ("LA", (40, 0), (255, 255, 255)),
        ("LA", (40, 255), (40, 40, 40)),
        ("LA", (0, 128), (127, 127, 127)),
    ],
)
def test_transparency_lies_on_white(mode: str, pixel: tuple[int, ...], colour: tuple[int, ...]) -> None:
    assert decode_plain(Image.new(mode, (16, 16), pixel)) == pytest.approx(colour, abs=1)


def test_transparent_webp_lies_on_white() -> None:
    image = Image.new("RGBA", (16, 16), (10, 20, 30, 0))
    assert decode_plain(image, "WEBP", lossless=True, exact=True) == (255, 255, 255)


@pytest.mark.parametrize("file_format", ["WEBP", "PNG"])
def test_an_animation_is_its_first_frame(file_format: str) -> None:
    first, *others = (Image.new("RGB", (16, 16), colour) for colour in (RED, GREEN, BLUE))
    moving = encode(first, file_format, save_all=True, append_images=others, lossless=True)
    assert Image.open(io.BytesIO(moving)).n_frames == 3
    assert decode_image(moving, LIMITS).getpixel((0, 0)) == RED


def test_a_phones_jpeg_with_a_second_picture_inside_is_its_first() -> None:
    second = Image.new("RGB", (WIDTH, HEIGHT), BLUE)
    assert_shows_corners(
        decode_image(encode(draw_corners(), "MPO", save_all=True, append_images=[second]), LIMITS)
    )


def test_a_photo_with_damaged_exif_is_read_all_the_same() -> None:
    photo = encode(draw_corners(), "JPEG", exif=b"Exif\x00\x00" + b"\xff" * 40)
    assert_shows_corners(decode_image(photo, LIMITS))


def test_no_bytes_are_no_image() -> None:
    with pytest.raises(UnreadableImage, match="empty"):
        decode_image(b"", LIMITS)


@pytest.mark.parametrize("file_format", ["JPEG", "PNG", "WEBP", "BMP"])
@pytest.mark.parametrize("share", [0.05, 0.5, 0.9])
def test_a_photo_cut_short_is_unreadable(file_format: str, share: float) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    photo = encode(Image.fromarray(noise), file_format)
    with pytest.raises(UnreadableImage, match="cut short"):
        decode_image(photo[: int(len(photo) * share)], LIMITS)


def test_a_signature_alone_is_unreadable() -> None:
    with pytest.raises(UnreadableImage):
        decode_image(b"\xff\xd8\xff", LIMITS)


@pytest.mark.parametrize(
    "content",
    [
        b"not an image",
        encode(Image.new("RGB", (8, 8)), "JPEG2000"),
        encode(Image.new("RGB", (8, 8)), "ICO"),
        b'<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"/>',
    ],
    ids=["text", "JPEG 2000", "ICO", "SVG"],
)
def test_other_content_is_unsupported(content: bytes) -> None:
    with pytest.raises(UnsupportedImage, match="JPEG, PNG, WebP, BMP, GIF, TIFF, AVIF or HEIC"):
        decode_image(content, LIMITS)


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize("side", [8_000, 12_000, 30_000])
def test_a_bomb_is_refused_by_its_header(side: int) -> None:
    """Its few bytes hold no pixel: decoding them would end in another error."""
    bomb = png_with_header(side, side, 8, 2, bytes(100))
    assert len(bomb) < 200
    with pytest.raises(ImageTooLarge) as refusal:
        decode_image(bomb, LIMITS)
    assert refusal.value.facts == {"limit": LIMITS.max_pixels}


def test_as_many_pixels_as_allowed_are_read_and_one_more_is_refused() -> None:
    photo = encode(Image.new("RGB", (20, 10)))
    assert decode_image(photo, ImageLimits(max_pixels=200)).size == (20, 10)
    with pytest.raises(ImageTooLarge, match="20 x 10") as refusal:
        decode_image(photo, ImageLimits(max_pixels=199))
    assert refusal.value.facts == {"limit": 199}


def test_as_many_bytes_as_allowed_are_read_and_one_more_is_refused() -> None:
    photo = encode(draw_corners())
    assert_shows_corners(decode_image(photo, ImageLimits(max_bytes=len(photo))))
    with pytest.raises(ImageTooLarge) as refusal:
        decode_image(photo, ImageLimits(max_bytes=len(photo) - 1))
    assert refusal.value.facts == {"limit": len(photo) - 1}


def draw_slow_jpeg() -> bytes:
    """A small file that takes its decoder a second: one scan over nine megapixels, many times."""
    return add_scans(encode(Image.new("L", (3000, 3000)), "JPEG", progressive=True), 90)


def test_decoding_that_takes_too_long_is_stopped() -> None:
    photo = draw_slow_jpeg()
    assert decode_image(photo, LIMITS).size == (3000, 3000)
    with pytest.raises(ImageTooLarge, match=r"takes over 0\.01 s") as refusal:
        decode_image(photo, ImageLimits(max_decode_seconds=0.01))
    assert refusal.value.facts == {"limit": 0.01}


def test_the_decoder_comes_back_after_every_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = []
    read = PhotoFile.read

    def look(self: PhotoFile, size: int = -1) -> bytes:
        blocks.append(read(self, size))
        return blocks[-1]

    monkeypatch.setattr(PhotoFile, "read", look)
    decode_image(draw_slow_jpeg(), LIMITS)
    assert max(block.count(START_OF_SCAN) for block in blocks) == 1
    assert sum(block.count(START_OF_SCAN) for block in blocks) > 90


def test_a_scan_inside_a_thumbnail_does_not_cut_the_headers_short() -> None:
    exif = Image.Exif()
    exif[0x927C] = encode(draw_corners(), "JPEG")  # a maker's note holds what it likes
    photo = encode(draw_corners(), "JPEG", exif=exif)
    assert photo.count(START_OF_SCAN) > 1
    assert_shows_corners(decode_image(photo, LIMITS))
