"""Photos that are made to cost: few bytes that ask for much time or memory."""

import struct
import zlib
from functools import cache

from PIL import Image

from tests.pictures import draw_photo, encode

MOST_SCANS = 100  # of a JPEG that is decoded
LARGE_SIDE = 7000  # 49 megapixels: just below the limit
PICTURES = [  # of every format and mode
    encode(draw_photo(1, noise=1, width=160, height=160), "JPEG"),
    encode(draw_photo(1, noise=1, width=160, height=160), "JPEG", progressive=True, quality=30),
    encode(draw_photo(1, width=160, height=160)),
    encode(draw_photo(1, width=160, height=160).convert("P")),
    encode(draw_photo(1, width=160, height=160), "WEBP"),
    encode(draw_photo(1, width=160, height=160), "WEBP", lossless=True),
    encode(draw_photo(1, width=160, height=160), "BMP"),
    encode(draw_photo(1, width=160, height=160).convert("I;16")),
    encode(draw_photo(1, width=160, height=160).convert("CMYK"), "JPEG"),
]


def add_scans(jpeg: bytes, count: int) -> bytes:
    """A progressive JPEG whose last scan is there so many times."""
    last = jpeg.rindex(b"\xff\xda")
    return jpeg[:last] + jpeg[last:-2] * count + jpeg[-2:]


@cache
def scan_bomb(scans: int) -> bytes:
    """A small progressive JPEG with so many scans more than it needs."""
    return add_scans(encode(draw_photo(1), "JPEG", progressive=True, quality=90), scans)


@cache
def slowest_jpeg() -> bytes:
    """The JPEG that takes longest of all that are decoded: as large and with as many scans as allowed."""
    jpeg = encode(flat(LARGE_SIDE), "JPEG", progressive=True, quality=90)
    return add_scans(jpeg, MOST_SCANS - jpeg.count(b"\xff\xda") + 1)


@cache
def flat_webp(side: int = LARGE_SIDE) -> bytes:
    """A WebP of one colour: two kilobytes for 49 megapixels, each of which takes 16 bytes of memory."""
    return encode(Image.new("RGBA", (side, side), (90, 20, 30, 200)), "WEBP", lossless=True)


@cache
def flat_png(side: int = LARGE_SIDE) -> bytes:
    """A PNG of one colour."""
    return encode(flat(side), "PNG")


def flat(side: int) -> Image.Image:
    """A square picture of one colour."""
    return Image.new("RGB", (side, side), (90, 20, 30))


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
