"""The extensions of a GIF before its first frame, counted before a decoder reads them one by one."""

from sameface.model.errors import ImageTooLarge, UnreadableImage

MAX_BLOCKS = 10_000  # of up to 255 bytes each: an animation's loop takes one, XMP takes some dozens
HEADER_BYTES = 13
COLOURS = 0x80  # the flag of a table of colours behind the header
EXTENSION = 0x21


def refuse_many_blocks(content: bytes) -> None:
    """Raise if the GIF has so many extensions before its first frame that reading them takes seconds."""
    try:
        flags = content[10]
        place = HEADER_BYTES + (3 << 1 + (flags & 7) if flags & COLOURS else 0)
        blocks = 0
        while content[place] == EXTENSION:
            place += 2  # its mark and its label
            while True:
                length = content[place]
                place, blocks = place + 1 + length, blocks + 1
                if blocks > MAX_BLOCKS:
                    raise ImageTooLarge(
                        f"The GIF has over {MAX_BLOCKS} blocks before its first frame.", limit=MAX_BLOCKS
                    )
                if length == 0:
                    break
    except IndexError as error:
        raise UnreadableImage("The GIF is cut short.") from error
