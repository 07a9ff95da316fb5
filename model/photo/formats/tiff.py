"""The directory of a TIFF, read before a decoder reads it: its tags may ask for far more than its pixels."""

import struct
from dataclasses import dataclass
from itertools import chain

from sameface.model.errors import ImageTooLarge, UnreadableImage, UnsupportedImage

MAX_TAGS = 200  # a camera writes fewer than a hundred
MAX_NUMBERS = 200_000  # in all tags: offsets and lengths of strips
COMPRESSIONS = (1, 5, 8, 32773, 32946)  # none, LZW, deflate, PackBits, and deflate as it was numbered before
MIN_TILE = 1_000_000  # pixels that a tile may have, however small the image is
BYTES = {1: 1, 2: 1, 7: 1}  # by type: bytes, text, anything
NUMBERS = {3: "H", 4: "I", 5: "II", 6: "b", 8: "h", 9: "i", 10: "ii", 11: "f", 12: "d", 13: "I", 16: "Q"}
WIDTH, HEIGHT, COMPRESSION, TILE_WIDTH, TILE_HEIGHT = 256, 257, 259, 322, 323
OFFSETS, LENGTHS = (273, 324), (279, 325)  # of strips, of tiles


@dataclass(frozen=True, slots=True)
class Tag:
    """An entry of the directory; `place` is where its values are."""

    kind: int
    count: int
    place: int

    @property
    def size(self) -> int:
        """The number of bytes of its values; 0 for a type that decoders skip."""
        return self.count * (BYTES.get(self.kind) or struct.calcsize(f"={NUMBERS.get(self.kind, '')}"))


def keep_first_image(content: bytes) -> bytes:
    """The TIFF without the link to its second directory; raises if the first is damaged or costly."""
    order = "<" if content.startswith(b"II") else ">"
    try:
        tags, end = read_tags(content, order)
        refuse_costly_tags(tags, len(content))
        refuse_costly_pixels(content, order, tags)
    except struct.error as error:
        raise UnreadableImage("The TIFF's directory is damaged or cut short.") from error
    return content[:end] + bytes(4) + content[end + 4 :]


def read_tags(content: bytes, order: str) -> tuple[dict[int, Tag], int]:
    """The tags of the first directory by their numbers, and where the directory ends."""
    [start] = struct.unpack_from(f"{order}I", content, 4)
    [count] = struct.unpack_from(f"{order}H", content, start)
    if count > MAX_TAGS:
        raise ImageTooLarge(f"The TIFF has {count} tags; {MAX_TAGS} are allowed.", limit=MAX_TAGS)
    tags: dict[int, Tag] = {}
    for place in range(start + 2, start + 2 + 12 * count, 12):
        number, kind, values, offset = struct.unpack_from(f"{order}HHII", content, place)
        if number in tags:
            raise UnreadableImage("The TIFF has a tag twice, and decoders differ in which they read.")
        tag = Tag(kind, values, place + 8)
        tags[number] = tag if tag.size <= 4 else Tag(kind, values, offset)
    return tags, start + 2 + 12 * count


def refuse_costly_tags(tags: dict[int, Tag], size: int) -> None:
    """Raise if the tags have more values than fit into a file of `size` bytes, or far too many numbers."""
    numbers = sum(tag.count for tag in tags.values() if tag.kind in NUMBERS)
    if numbers > MAX_NUMBERS:
        raise ImageTooLarge(
            f"The TIFF has {numbers} numbers in its tags; {MAX_NUMBERS} are allowed.", limit=MAX_NUMBERS
        )
    if sum(tag.size for tag in tags.values()) > size:
        raise UnreadableImage("The TIFF's tags are longer than the TIFF.")


def refuse_costly_pixels(content: bytes, order: str, tags: dict[int, Tag]) -> None:
    """Raise if decoding could cost more than the pixels do: by compression, large tiles, shared strips."""

    def read(number: int, otherwise: int = 0) -> int:
        return next(iter(read_values(content, order, tags.get(number))), otherwise)

    if read(COMPRESSION, 1) not in COMPRESSIONS:
        raise UnsupportedImage(
            "The TIFF is compressed in a way that is not read here; none, LZW, deflate and PackBits are."
        )
    tile = read(TILE_WIDTH) * read(TILE_HEIGHT)
    if tile > max(MIN_TILE, 2 * read(WIDTH) * read(HEIGHT)):
        raise ImageTooLarge(f"The TIFF has tiles of {tile} pixels, more than it has itself.", limit=MIN_TILE)
    places, lengths = (
        list(chain.from_iterable(read_values(content, order, tags.get(number)) for number in kind))
        for kind in (OFFSETS, LENGTHS)
    )
    if len(places) != len(lengths) or not all(lengths) or sum(lengths) > len(content):
        raise UnreadableImage("The TIFF's strips are longer than the TIFF, or have no length.")


def read_values(content: bytes, order: str, tag: Tag | None) -> tuple[int, ...]:
    """The values of a tag of whole numbers; none if it is missing."""
    if tag is None:
        return ()
    if tag.kind not in (3, 4):
        raise UnreadableImage("The TIFF has a size that is no whole number.")
    return struct.unpack_from(f"{order}{tag.count}{NUMBERS[tag.kind]}", content, tag.place)
