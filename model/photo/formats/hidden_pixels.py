"""The pictures in an AVIF or HEIC, measured before they are decoded: a header may say less than they have."""

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from sameface.model.errors import ImageTooLarge, UnreadableImage

MAX_ITEMS = 1_000  # pictures and metadata of one file
MAX_PARTS = 10_000  # of all items
MAX_UNITS = 200  # of one picture: a still has three or four
MANY_TIMES = 4  # the pixels of the header: colours, transparency, a thumbnail, a gain map
FEW_PIXELS = 1_000_000  # that the pictures may have, however few the header says
SEQUENCE_HEADER = 1  # the unit of AV1 that says how large frames may be
PICTURE = b"av01"
ONCE = (b"meta", b"iinf", b"iloc", b"idat", b"iprp", b"ipco")


class Box(NamedTuple):
    """A part of the file: four letters, and where its content begins and ends."""

    kind: bytes
    start: int
    end: int


class Reader:
    """Reads numbers of whole bytes, one after the other; raises IndexError at the end."""

    def __init__(self, content: bytes, start: int, end: int) -> None:
        self.content = content
        self.place = start
        self.end = end

    def take(self, length: int) -> bytes:
        """The next `length` bytes."""
        if length > self.end - self.place:
            raise IndexError(self.place)
        self.place += length
        return self.content[self.place - length : self.place]

    def number(self, length: int) -> int:
        """The next number, of `length` bytes."""
        return int.from_bytes(self.take(length))


def refuse_hidden_pixels(content: bytes, kind: str, pixels: int) -> None:
    """Raise if the pictures of an AVIF or HEIC have far more than the `pixels` of its header.

    All of an AVIF's are added up, by what AV1 itself says. libheif decodes no picture of a HEIC that is
    larger than its box says, but a tile, or a picture that is cropped, may be larger than what comes of it.
    """
    try:
        if kind == "AVIF":
            hidden = sum(measure_picture(picture) for picture in find_pictures(content))
        else:
            hidden = max(measure_boxes(content))
    except (IndexError, KeyError, ValueError) as error:
        raise UnreadableImage(
            "The image is damaged, cut short, or made in a way that is not read."
        ) from error
    most = max(FEW_PIXELS, MANY_TIMES * pixels)
    if hidden > most:
        raise ImageTooLarge(f"The image holds {hidden} pixels, far more than its header says.", limit=most)


def measure_boxes(content: bytes) -> Iterator[int]:
    """Yield width x height of each box `ispe` of a HEIC: of its pictures, tiles and thumbnails."""
    top = {box.kind: box for box in read_boxes(content, 0, len(content))}
    inside = {box.kind: box for box in read_boxes(content, top[b"meta"].start + 4, top[b"meta"].end)}
    sizes = {box.kind: box for box in read_boxes(content, *inside[b"iprp"][1:])}
    for box in read_boxes(content, *sizes[b"ipco"][1:]):
        if box.kind == b"ispe":
            fields = Reader(content, box.start + 4, box.end)
            yield fields.number(4) * fields.number(4)


def find_pictures(content: bytes) -> Iterator[bytes]:
    """The data of every item that is coded by AV1."""
    top = {box.kind: box for box in read_boxes(content, 0, len(content))}
    if b"moov" in top:
        raise ValueError("a film")
    inside = {box.kind: box for box in read_boxes(content, top[b"meta"].start + 4, top[b"meta"].end)}
    kinds = read_kinds(content, inside[b"iinf"])
    data = inside.get(b"idat", Box(b"idat", 0, 0))
    for item, picture in read_items(content, inside[b"iloc"], data):
        if kinds.get(item) == PICTURE:
            yield picture


def read_boxes(content: bytes, start: int, end: int) -> Iterator[Box]:
    """The boxes between `start` and `end`; raises if a kind that is looked for is there twice."""
    seen = set()
    while start < end:
        reader = Reader(content, start, end)
        size, kind = reader.number(4), reader.take(4)
        if size == 1:
            size = reader.number(8)
        stop = start + size if size else end
        if not reader.place <= stop <= end or (kind in seen and kind in ONCE):
            raise ValueError("a box")
        seen.add(kind)
        yield Box(kind, reader.place, stop)
        start = stop


def read_kinds(content: bytes, box: Box) -> dict[int, bytes]:
    """By the number of an item: the four letters of what it is."""
    reader = Reader(content, box.start, box.end)
    count = reader.number(2 if reader.number(4) >> 24 == 0 else 4)
    entries = list(islice(read_boxes(content, reader.place, box.end), MAX_ITEMS + 1))
    if len(entries) != count:
        raise ValueError("items")
    kinds = {}
    for entry in entries:
        fields = Reader(content, entry.start, entry.end)
        version = fields.number(4) >> 24
        item = fields.number(2 if version == 2 else 4)
        fields.take(2)
        kinds[item] = fields.take(4)
    return kinds


def read_items(content: bytes, box: Box, data: Box) -> Iterator[tuple[int, bytes]]:
    """Every item's number and its bytes, which are in the file or in the box `data`."""
    reader = Reader(content, box.start, box.end)
    version, sizes = reader.number(4) >> 24, reader.number(2)
    offset, length, base, index = sizes >> 12, sizes >> 8 & 15, sizes >> 4 & 15, sizes & 15
    wide = 4 if version == 2 else 2
    count = reader.number(wide)
    if count > MAX_ITEMS:
        raise ValueError("too many items")
    parts, taken = 0, 0
    for _ in range(count):
        item = reader.number(wide)
        method = reader.number(2) & 15 if version else 0
        reader.take(2)
        start = reader.number(base) + {0: 0, 1: data.start}[method]
        picture = bytearray()
        for _ in range(reader.number(2)):
            reader.take(index if version else 0)
            place, size = start + reader.number(offset), reader.number(length)
            picture += content[place : place + size] if size else content[place:]
            parts += 1
            if parts > MAX_PARTS or taken + len(picture) > len(content):
                raise ValueError("parts that overlap")
        taken += len(picture)
        yield item, bytes(picture)


def measure_picture(picture: bytes) -> int:
    """The pixels of the largest frame that AV1's sequence headers in `picture` allow."""
    reader, largest = Reader(picture, 0, len(picture)), 0
    for _ in range(MAX_UNITS):
        if reader.place == len(picture):
            return largest
        header = reader.number(1)
        reader.take(1 if header & 4 else 0)
        unit = reader.take(read_length(reader) if header & 2 else len(picture) - reader.place)
        if header >> 3 & 15 == SEQUENCE_HEADER:
            largest = max(largest, measure_frames(unit))
    raise ValueError("too many units")


def read_length(reader: Reader) -> int:
    """A length in AV1's way: seven bits per byte, the lowest first."""
    length = 0
    for place in range(8):
        part = reader.number(1)
        length |= (part & 127) << 7 * place
        if part < 128:
            return length
    raise ValueError("a length")


def measure_frames(header: bytes) -> int:
    """The pixels of the largest frame by a sequence header; raises for what only films have."""
    bits = iter("".join(f"{byte:08b}" for byte in header[:64]))

    def read(count: int) -> int:
        return int("0" + "".join(next(bits, "0") for _ in range(count)), 2)

    read(4)  # profile, and whether it is a still picture
    if read(1):  # a short header
        read(5)
    else:
        if read(1):
            raise ValueError("times")
        delays = read(1)
        for _ in range(read(5) + 1):
            read(12)
            if read(5) > 7:
                read(1)
            if delays and read(1):
                read(4)
    width, height = read(4) + 1, read(4) + 1
    return (read(width) + 1) * (read(height) + 1)
