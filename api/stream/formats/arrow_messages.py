"""The messages of an Arrow IPC stream, told apart without reading their columns.

A message has a mark of four bytes, the length of its description, the description (a flatbuffer, whose root
is a table of version, kind, header and the body's length), and its body.
"""

import struct
from dataclasses import dataclass

from sameface.api.errors import InvalidRequest

MARK = b"\xff\xff\xff\xff"
LONGEST_DESCRIPTION = 100_000
END, SCHEMA, RECORD_BATCH = 0, 1, 3
KIND, HEADER, BODY_LENGTH = 1, 2, 3  # fields of a message
COMPRESSION = 3  # field of a record batch


@dataclass(frozen=True, slots=True)
class Message:
    """One message with all its bytes; its kind is END, SCHEMA, RECORD_BATCH or another number."""

    kind: int
    content: bytes


def take_message(held: bytearray, limit_bytes: int) -> Message | None:
    """Take the next message off `held`; None while it is incomplete."""
    if not held.startswith(MARK[: len(held)]):
        raise InvalidRequest("The body is no Arrow IPC stream.")
    if len(held) < 8:
        return None
    length = int.from_bytes(held[4:8], "little")
    if length > LONGEST_DESCRIPTION:
        raise InvalidRequest(f"A message of the Arrow stream is described in {LONGEST_DESCRIPTION} bytes.")
    if len(held) < 8 + length:
        return None
    kind, body = describe(bytes(held[8 : 8 + length])) if length else (END, 0)
    if not 0 <= body <= limit_bytes:
        raise InvalidRequest(
            f"A record batch may have {limit_bytes} bytes: write smaller ones.", limit=limit_bytes
        )
    if len(held) < 8 + length + body:
        return None
    content = bytes(held[: 8 + length + body])
    del held[: len(content)]
    return Message(kind, content)


def describe(description: bytes) -> tuple[int, int]:
    """The kind of a message and the length of its body; compressed bodies are refused."""
    try:
        message = struct.unpack_from("<I", description)[0]
        kind = read_field(description, message, KIND, "<B")
        if kind == RECORD_BATCH:
            header = find_field(description, message, HEADER)
            batch = header + struct.unpack_from("<I", description, header)[0]
            if find_field(description, batch, COMPRESSION):
                raise InvalidRequest("The Arrow stream is compressed: write it without compression.")
        return kind, read_field(description, message, BODY_LENGTH, "<q")
    except struct.error as error:
        raise InvalidRequest("A message of the Arrow stream cannot be read.") from error


def read_field(flatbuffer: bytes, table: int, number: int, kind: str) -> int:
    """The number in a field of a table, 0 if the field is missing."""
    place = find_field(flatbuffer, table, number)
    return int(struct.unpack_from(kind, flatbuffer, place)[0]) if place else 0


def find_field(flatbuffer: bytes, table: int, number: int) -> int:
    """Where a field of the table at `table` is, 0 if it is missing."""
    fields = table - struct.unpack_from("<i", flatbuffer, table)[0]
    if fields < 0:
        raise struct.error("the table's fields are outside")
    size = struct.unpack_from("<H", flatbuffer, fields)[0]
    at = 4 + 2 * number
    offset = struct.unpack_from("<H", flatbuffer, fields + at)[0] if at < size else 0
    return table + offset if offset else 0
