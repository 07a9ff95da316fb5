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
    encode(draw_photo(1, width=160, height=160), "GIF"),
    encode(draw_photo(1, width=160, height=160), "TIFF"),
    encode(draw_photo(1, width=160, height=160).convert("CMYK"), "TIFF", compression="tiff_lzw"),
    encode(draw_photo(1, width=160, height=160), "TIFF", compression="tiff_adobe_deflate", strip_size=2000),
    encode(draw_photo(1, width=160, height=160), "HEIF"),
    encode(draw_photo(1, width=160, height=160), "AVIF"),
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


# TIFF: a directory of tags, which may ask for anything.

NUMBER, LONG, ANYTHING = 3, 4, 7  # types of a tag's values
TIFF_SIZE = 16


def tiff(*tags: tuple[int, int, int, int], data: bytes = b"", following: int = 0, order: str = "<") -> bytes:
    """A grey TIFF of 16 x 16 pixels with these tags (number, type, count, value) beside or for its own.

    `data` comes at offset 8, the directory behind it, and `following` is where the next directory is.
    """
    pixels = bytes(range(256))
    own = {
        256: (NUMBER, 1, TIFF_SIZE),
        257: (NUMBER, 1, TIFF_SIZE),
        258: (NUMBER, 1, 8),
        259: (NUMBER, 1, 1),
        262: (NUMBER, 1, 1),
        273: (LONG, 1, 8 + len(data)),
        277: (NUMBER, 1, 1),
        278: (NUMBER, 1, TIFF_SIZE),
        279: (LONG, 1, len(pixels)),
    }
    own |= {number: (kind, count, value) for number, kind, count, value in tags}
    start = 8 + len(data) + len(pixels)
    entries = b"".join(
        struct.pack(f"{order}HHI", number, kind, count)
        + (
            struct.pack(f"{order}HH", value, 0)
            if (kind, count) == (NUMBER, 1)
            else struct.pack(f"{order}I", value)
        )
        for number, (kind, count, value) in sorted(own.items())
    )
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(f"{order}I", start)
    directory = struct.pack(f"{order}H", len(own)) + entries + struct.pack(f"{order}I", following)
    return head + data + pixels + directory


@cache
def tiff_of_tags() -> bytes:
    """A TIFF with a thousand tags, each as long as the file: to keep them takes nine gigabytes."""
    return tiff(*((40_000 + number, ANYTHING, 9_000_000, 8) for number in range(1000)), data=bytes(9_000_000))


@cache
def tiff_of_one_strip() -> bytes:
    """A TIFF of 2,500 strips that are all the same nine megabytes of deflate, which inflate to nothing."""
    empty = b"\x78\x01" + b"\x00\x00\x00\xff\xff" * 1_800_000
    side, size = 2_500, len(empty)
    table = struct.pack("<I", 8) * side + struct.pack("<I", size) * side
    strips = ((273, LONG, side, 8 + size), (279, LONG, side, 8 + size + 4 * side))
    return tiff(
        (256, NUMBER, 1, side),
        (257, NUMBER, 1, side),
        (259, NUMBER, 1, 8),
        (278, NUMBER, 1, 1),
        *strips,
        data=empty + table,
    )


@cache
def tiff_of_a_tile() -> bytes:
    """A TIFF of 16 x 16 pixels in one tile of 60,000 x 60,000, which inflates to gigabytes."""
    tile = zlib.compress(bytes(10_000_000), 9)
    tags = ((322, NUMBER, 1, 60_000), (323, NUMBER, 1, 60_000), (324, LONG, 1, 8), (325, LONG, 1, len(tile)))
    return tiff((259, NUMBER, 1, 8), *tags, data=tile)


def endless_tiff() -> bytes:
    """A TIFF whose directory is followed by itself."""
    start = 8 + TIFF_SIZE * TIFF_SIZE
    return tiff(following=start)


@cache
def gif_of_frames(frames: int = 100_000) -> bytes:
    """A GIF of many frames, of which one is decoded."""
    first = encode(Image.new("L", (16, 16), 200), "GIF")
    frame = first[first.index(b"\x2c") : -1]
    return first[:-1] + frame * (frames - 1) + first[-1:]


@cache
def gif_of_comments() -> bytes:
    """A GIF with millions of comments before its picture."""
    gif = encode(Image.new("L", (16, 16), 200), "GIF")
    place = gif.index(b"\x2c")
    return gif[:place] + b"\x21\xfe\x01x\x00" * 1_900_000 + gif[place:]


def gif_beyond_its_screen(width: int) -> bytes:
    """A GIF that says 16 x 16 pixels, and has a frame at the right of them that ends at `width`."""
    gif = bytearray(encode(Image.new("L", (16, 16), 200), "GIF"))
    place = gif.index(b"\x2c")
    gif[place + 5 : place + 7] = struct.pack("<H", width)
    return bytes(gif)
