"""MXNet's RecordIO as InsightFace's training sets use it: a .rec of records and an .idx of their offsets."""

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sameface.training.errors import DatasetRefused

MAGIC = 0xCED7230A
PREFIX = struct.Struct("<II")  # magic; 3 bits for the part of a split record, 29 bits of length
HEADER = struct.Struct("<IfQQ")  # number of labels that follow, the label if that is 0, two ids
LENGTH = (1 << 29) - 1


@dataclass(frozen=True, slots=True)
class Record:
    """An encoded image and its labels."""

    labels: tuple[float, ...]
    image: bytes


class RecordFile:
    """Reads records by offset, safely from several threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        index = path.with_suffix(".idx")
        try:
            self._file = os.open(path, os.O_RDONLY)
            lines = index.read_text("ascii").splitlines()
        except OSError as error:
            raise DatasetRefused(f"{error.filename} cannot be read: {error.strerror}.") from error
        try:
            self._offsets = {int(key): int(offset) for key, offset in (line.split("\t") for line in lines)}
        except ValueError as error:
            raise DatasetRefused(f"{index} is no index of a RecordIO file.") from error

    def list_images(self) -> Iterator[tuple[int, int]]:
        """The offset and label of every image.

        Record 0 of InsightFace's sets is no image: its first label is the key after the last image.
        """
        first = self.read(self._offsets[0]) if 0 in self._offsets else None
        last = int(first.labels[0]) if first and len(first.labels) > 1 else max(self._offsets) + 1
        for key, offset in sorted(self._offsets.items()):
            if (key > 0 or not first or len(first.labels) < 2) and key < last:
                yield offset, int(self.read(offset, image=False).labels[0])

    def read(self, offset: int, *, image: bool = True) -> Record:
        """The record at `offset`; without `image`, only its labels are read."""
        magic, length = PREFIX.unpack(self._take(offset, PREFIX.size))
        if magic != MAGIC or length >> 29:
            raise DatasetRefused(f"{self.path} has no whole record at {offset}.")
        size = length & LENGTH
        start = offset + PREFIX.size
        count, label, _, _ = HEADER.unpack(self._take(start, HEADER.size))
        labels = (
            struct.unpack(f"<{count}f", self._take(start + HEADER.size, 4 * count)) if count else (label,)
        )
        head = HEADER.size + 4 * count
        return Record(labels, self._take(start + head, size - head) if image else b"")

    def _take(self, offset: int, size: int) -> bytes:
        content = os.pread(self._file, size, offset)
        if len(content) != size:
            raise DatasetRefused(f"{self.path} is cut short.")
        return content
