"""Photos that are made to cost: refused before they are decoded."""

import io
import struct
import zlib

import httpx
import pytest
from PIL import Image

from tests.api.problems import expect
from tests.pictures import draw_photo, encode


def add_scans(jpeg: bytes, count: int) -> bytes:
    """A progressive JPEG whose last scan is repeated."""
    last = jpeg.rindex(b"\xff\xda")
    return jpeg[:last] + jpeg[last:-2] * count + jpeg[-2:]


def test_a_jpeg_of_many_scans_is_refused_and_an_ordinary_one_is_not(client: httpx.Client) -> None:
    progressive = encode(draw_photo(1), "JPEG", progressive=True, quality=90)
    assert client.post("/v1/detect", files={"image": progressive}).status_code == 200
    bomb = add_scans(progressive, 20_000)
    assert len(bomb) < 10_000_000
    answer = expect(client.post("/v1/detect", files={"image": bomb}), 413, "image_too_large")
    assert answer["limit"] == 100


def draw_line(width: int, height: int) -> bytes:
    """A PNG of these sides, written without a picture in memory."""
    rows = zlib.compress(b"\0" * (1 + width) * min(height, 10))
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)),
        (b"IDAT", rows),
        (b"IEND", b""),
    ]
    body = b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + body


@pytest.mark.parametrize(("width", "height"), [(1, 50_000_000), (40_000_000, 1), (10, 2_000)])
def test_sides_that_no_camera_makes_are_refused(client: httpx.Client, width: int, height: int) -> None:
    expect(client.post("/v1/detect", files={"image": draw_line(width, height)}), 413, "image_too_large")


def test_a_panorama_is_a_photo(client: httpx.Client) -> None:
    panorama = io.BytesIO()
    Image.new("RGB", (3000, 200)).save(panorama, "JPEG")
    assert client.post("/v1/detect", files={"image": panorama.getvalue()}).status_code == 200
