"""The entries of a batch as they arrive: lines of NDJSON, or the photos of a form."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from python_multipart.multipart import parse_options_header

from sameface.api.body.form import MAX_FIELD_BYTES
from sameface.api.body.multipart import PartReader
from sameface.api.body.read_body import BASE64_GROWTH
from sameface.api.errors import InvalidRequest, UnsupportedMediaType
from sameface.api.settings import Settings
from sameface.model.errors import ImageTooLarge, SamefaceError

MAX_ID = 255
ENTRY_BYTES = 500  # that an entry takes beside its content


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a batch: a line as it came, the fields of a form, or the error about it."""

    number: int  # from 1
    content: bytes | dict[str, Any] | SamefaceError
    id: str | None = None
    content_bytes: int = 0

    @property
    def size(self) -> int:
        """The bytes that it takes in memory, about; an empty entry takes some too."""
        return ENTRY_BYTES + self.content_bytes


class EntryReader(Protocol):
    """Turns the chunks of a body into entries."""

    def write(self, chunk: bytes) -> list[Entry]:
        """The entries that are complete with this chunk."""

    def close(self) -> list[Entry]:
        """What is left at the end of the body."""


def reader_for(content_type: str, settings: Settings) -> EntryReader:
    """The reader of a content type."""
    kind, options = parse_options_header(content_type)
    if kind in (b"application/x-ndjson", b"application/ndjson", b"application/jsonl"):
        return LineReader(int(settings.max_image_bytes * BASE64_GROWTH) + MAX_FIELD_BYTES)
    if kind == b"multipart/form-data":
        return PhotoReader(options.get(b"boundary", b""), settings.max_image_bytes)
    raise UnsupportedMediaType("Send application/x-ndjson or multipart/form-data.")


class LineReader:
    """NDJSON: one entry a line. A line that is too long is dropped as it comes, and said."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self._line = bytearray()
        self._too_long = False
        self._number = 0

    def write(self, chunk: bytes) -> list[Entry]:
        """The lines that are complete with this chunk."""
        *ends, rest = chunk.split(b"\n")
        entries = [entry for end in ends for entry in self._end(end)]
        self._add(rest)
        return entries

    def close(self) -> list[Entry]:
        """A last line without an end."""
        return self._end(b"")

    def _add(self, part: bytes) -> None:
        self._too_long = self._too_long or len(self._line) + len(part) > self.limit_bytes
        if self._too_long:
            self._line.clear()
        else:
            self._line += part

    def _end(self, part: bytes) -> list[Entry]:
        self._add(part)
        line, too_long = bytes(self._line), self._too_long
        self._line.clear()
        self._too_long = False
        self._number += 1
        if too_long:
            problem = InvalidRequest(f"A line may have {self.limit_bytes} bytes.", limit=self.limit_bytes)
            return [Entry(self._number, problem)]
        return [Entry(self._number, line, content_bytes=len(line))] if line.strip() else []


class PhotoReader(PartReader):
    """A form of any length: every part is a photo `images`, and its file name is its id."""

    def __init__(self, boundary: bytes, limit_bytes: int) -> None:
        super().__init__(boundary)
        self.limit_bytes = limit_bytes
        self._ready: list[Entry] = []
        self._number = 0
        self._broken = False

    def write(self, chunk: bytes) -> list[Entry]:
        """The photos that are complete with this chunk."""
        return self._go_on(lambda: self.parse(chunk))

    def close(self) -> list[Entry]:
        """Nothing, if the form ended as it should."""
        return self._go_on(self.check_end)

    def _go_on(self, step: Callable[[], None]) -> list[Entry]:
        """What is ready after a step; once the form is broken, nothing of it can be told apart any more."""
        try:
            if not self._broken:
                step()
        except InvalidRequest as error:
            self._broken = True
            self._ready.append(Entry(self._number + 1, error))
        ready, self._ready = self._ready, []
        return ready

    def start_part(self, options: dict[bytes, bytes]) -> None:
        """The name and the file name of a part."""
        if options.get(b"name") != b"images":
            raise InvalidRequest("A batch is a form of parts named images, and options go into the address.")
        self.id = options.get(b"filename", b"").decode("utf-8", "replace")[:MAX_ID]
        self.too_large = False
        self._number += 1

    def add_to_part(self, data: bytes, start: int, end: int) -> None:
        """More of a photo; one that is too large is dropped as it comes."""
        self.too_large = self.too_large or len(self.content) + end - start > self.limit_bytes
        if self.too_large:
            self.content.clear()
        else:
            self.content += data[start:end]

    def end_part(self) -> None:
        """A photo is complete."""
        content: dict[str, Any] | SamefaceError = {"id": self.id, "image": bytes(self.content)}
        if self.too_large:
            limit = self.limit_bytes
            content = ImageTooLarge(f"An image may have {limit} bytes.", limit=limit)
        self._ready.append(Entry(self._number, content, self.id, len(self.content)))
