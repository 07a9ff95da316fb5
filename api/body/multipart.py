"""A multipart body, taken apart as it streams in."""

from abc import ABC, abstractmethod
from collections.abc import Callable

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from sameface.api.errors import InvalidRequest

MAX_HEADER_BYTES = 8_000  # of one part's headers


class PartReader(ABC):
    """Parses boundaries and headers; what is done with a part is its readers' own."""

    def __init__(self, boundary: bytes) -> None:
        if not boundary:
            raise InvalidRequest("The content type names no boundary.")
        self._finished = False
        callbacks: dict[str, Callable[..., None]] = {
            "on_part_begin": self._begin_part,
            "on_header_field": self._add_to_header_name,
            "on_header_value": self._add_to_header_value,
            "on_header_end": self._end_header,
            "on_headers_finished": self._end_headers,
            "on_part_data": self.add_to_part,
            "on_part_end": self.end_part,
            "on_end": self._finish,
        }
        self._parser = MultipartParser(boundary, callbacks)  # type: ignore[arg-type]

    @abstractmethod
    def start_part(self, options: dict[bytes, bytes]) -> None:
        """A part comes: `options` has its name, and the file name if it has one."""

    @abstractmethod
    def add_to_part(self, data: bytes, start: int, end: int) -> None:
        """More of a part's content."""

    @abstractmethod
    def end_part(self) -> None:
        """A part is complete."""

    def parse(self, chunk: bytes) -> None:
        """The next bytes of the body."""
        try:
            self._parser.write(chunk)
        except FormParserError as error:
            raise InvalidRequest("The multipart body is malformed.") from error

    def check_end(self) -> None:
        """The body has ended, and must be complete."""
        if not self._finished:
            raise InvalidRequest("The multipart body ends before its closing boundary.")

    def _begin_part(self) -> None:
        """Forget the part before."""
        self.content = bytearray()
        self._headers: dict[str, bytes] = {}
        self._header_bytes = 0
        self._header_name = self._header_value = b""

    def _add_to_header_name(self, data: bytes, start: int, end: int) -> None:
        self._header_name += self._take_header(data[start:end])

    def _add_to_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header_value += self._take_header(data[start:end])

    def _take_header(self, data: bytes) -> bytes:
        """A header holds a name, not a payload."""
        self._header_bytes += len(data)
        if self._header_bytes > MAX_HEADER_BYTES:
            raise InvalidRequest("A part's headers are too long.")
        return data

    def _end_header(self) -> None:
        self._headers[self._header_name.decode("latin-1").lower()] = self._header_value
        self._header_name = self._header_value = b""

    def _end_headers(self) -> None:
        _, options = parse_options_header(self._headers.get("content-disposition", b""))
        self.start_part(options)

    def _finish(self) -> None:
        """The closing boundary was seen."""
        self._finished = True
