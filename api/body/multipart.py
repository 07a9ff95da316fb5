"""Parses a multipart body into events while it streams in."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from sameface.api.errors import InvalidRequest

MAX_HEADER_BYTES = 8_000  # of one part's headers


@dataclass(frozen=True, slots=True)
class PartStart:
    """The headers of a part are complete: its name, and its file name if it has one."""

    name: str
    filename: str | None


@dataclass(frozen=True, slots=True)
class PartData:
    """The next piece of a part's content."""

    content: bytes


@dataclass(frozen=True, slots=True)
class PartEnd:
    """A part is complete."""


PartEvent: TypeAlias = PartStart | PartData | PartEnd


class PartParser:
    """Turns the chunks of a multipart body into the events of its parts."""

    def __init__(self, boundary: bytes) -> None:
        if not boundary:
            raise InvalidRequest("The content type names no boundary.")
        callbacks: dict[str, Callable[..., None]] = {
            "on_part_begin": self._begin_part,
            "on_header_field": self._add_to_header_name,
            "on_header_value": self._add_to_header_value,
            "on_header_end": self._end_header,
            "on_headers_finished": self._end_headers,
            "on_part_data": lambda data, start, end: self._events.append(PartData(data[start:end])),
            "on_part_end": lambda: self._events.append(PartEnd()),
            "on_end": self._end_body,
        }
        self._events: list[PartEvent] = []
        self._finished = False
        try:
            self._parser = MultipartParser(boundary, callbacks)  # type: ignore[arg-type]
        except FormParserError as error:
            raise InvalidRequest("The boundary of the multipart body is not valid.") from error

    def parse(self, chunk: bytes) -> Iterator[PartEvent]:
        """Yield the events of `chunk`, and then raise InvalidRequest if it is malformed."""
        failure = None
        try:
            self._parser.write(chunk)
        except FormParserError:
            failure = InvalidRequest("The multipart body is malformed.")
        except InvalidRequest as error:
            failure = error
        events, self._events = self._events, []
        yield from events
        if failure:
            raise failure

    def check_end(self) -> None:
        """Raise InvalidRequest if the body has ended without its closing boundary."""
        if not self._finished:
            raise InvalidRequest("The multipart body ends before its closing boundary.")

    def _begin_part(self) -> None:
        self._headers: dict[str, bytes] = {}
        self._header_bytes = 0
        self._header_name = self._header_value = b""

    def _add_to_header_name(self, data: bytes, start: int, end: int) -> None:
        self._header_name += self._take_header(data[start:end])

    def _add_to_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header_value += self._take_header(data[start:end])

    def _take_header(self, data: bytes) -> bytes:
        """Count `data` against MAX_HEADER_BYTES and return it: headers hold names, not payload."""
        self._header_bytes += len(data)
        if self._header_bytes > MAX_HEADER_BYTES:
            raise InvalidRequest("A part's headers are too long.")
        return data

    def _end_header(self) -> None:
        self._headers[self._header_name.decode("latin-1").lower()] = self._header_value
        self._header_name = self._header_value = b""

    def _end_headers(self) -> None:
        _, options = parse_options_header(self._headers.get("content-disposition", b""))
        name, filename = options.get(b"name", b""), options.get(b"filename")
        self._events.append(
            PartStart(
                name.decode("utf-8", "replace"),
                None if filename is None else filename.decode("utf-8", "replace"),
            )
        )

    def _end_body(self) -> None:
        self._finished = True
