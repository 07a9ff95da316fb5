"""Reads the entries of a batch while they arrive: lines of NDJSON, or photos of a form."""

from dataclasses import dataclass
from typing import Any, ClassVar

from sameface.api.body.multipart import PartData, PartEvent, PartParser, PartStart
from sameface.api.errors import InvalidRequest
from sameface.model.errors import ImageTooLarge, SamefaceError

MAX_ID = 255
ENTRY_BYTES = 500  # of memory that an entry takes beside its content


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a batch: an unparsed line, the fields of a form's photo, or the error to answer."""

    count: ClassVar[int] = 1

    number: int  # from 1
    content: bytes | dict[str, Any] | SamefaceError
    id: str | None = None
    size: int = ENTRY_BYTES  # approximate bytes in memory


class LineReader:
    """Reads NDJSON, one entry per line; a line over `limit_bytes` is dropped and becomes an error."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.held = bytearray()
        self._too_long = False
        self._number = 0

    def read(self, chunk: bytes, *, last: bool) -> list[Entry]:
        """The lines that `chunk` completes; the last line of a body needs no newline."""
        *ends, rest = chunk.split(b"\n")
        entries = [entry for end in ends for entry in self._end(end)]
        self._add(rest)
        return entries + (self._end(b"") if last else [])

    def _add(self, part: bytes) -> None:
        self._too_long = self._too_long or len(self.held) + len(part) > self.limit_bytes
        if self._too_long:
            self.held.clear()
        else:
            self.held += part

    def _end(self, part: bytes) -> list[Entry]:
        self._add(part)
        line, too_long = bytes(self.held), self._too_long
        self.held.clear()
        self._too_long = False
        self._number += 1
        if too_long:
            problem = InvalidRequest(f"A line may have {self.limit_bytes} bytes.", limit=self.limit_bytes)
            return [Entry(self._number, problem)]
        return [Entry(self._number, line, size=ENTRY_BYTES + len(line))] if line.strip() else []


class PhotoReader:
    """Reads a form of any length: every part is named `images` and is a photo, its file name is the id."""

    def __init__(self, boundary: bytes, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self._parser = PartParser(boundary)
        self.held = bytearray()
        self._number = 0
        self._broken = False

    def read(self, chunk: bytes, *, last: bool) -> list[Entry]:
        """The photos that `chunk` completes; once the form is malformed, the rest is ignored."""
        found: list[Entry] = []
        try:
            if not self._broken:
                for event in self._parser.parse(chunk):
                    found += self._take(event)
                if last:
                    self._parser.check_end()
        except InvalidRequest as error:
            self._broken = True
            found.append(Entry(self._number + 1, error))
        return found

    def _take(self, event: PartEvent) -> list[Entry]:
        """The photo that `event` completes, if any; a photo over `limit_bytes` is dropped, and an error."""
        if isinstance(event, PartStart):
            if event.name != "images":
                raise InvalidRequest("A batch is a form of parts named images; options go into the address.")
            self._id, self.held, self._too_large = (event.filename or "")[:MAX_ID], bytearray(), False
            self._number += 1
        elif isinstance(event, PartData):
            size = len(self.held) + len(event.content)
            self._too_large = self._too_large or size > self.limit_bytes
            self.held += b"" if self._too_large else event.content
            if self._too_large:
                self.held.clear()
        else:
            return [self._end_photo()]
        return []

    def _end_photo(self) -> Entry:
        content: dict[str, Any] | SamefaceError = {"id": self._id, "image": bytes(self.held)}
        if self._too_large:
            limit = self.limit_bytes
            content = ImageTooLarge(f"An image may have {limit} bytes.", limit=limit)
        size, self.held = ENTRY_BYTES + len(self.held), bytearray()
        return Entry(self._number, content, self._id, size)
