"""Multipart bodies, part by part as they stream in."""

from collections.abc import Callable
from typing import Any

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from api.errors import InvalidRequest, TooManyImages
from api.settings import Settings
from model.errors import ImageTooLarge

MAX_FIELD_BYTES = 64_000  # of a form field that is no image
MAX_HEADER_BYTES = 8_000  # of one part's headers
MAX_PARTS = 100


class FormReader:
    """Collects the parts of a multipart body, refusing a part as soon as it is too large.

    `photos` has the fields that are images, and whether each takes many.
    """

    def __init__(self, boundary: bytes, photos: dict[str, bool], settings: Settings) -> None:
        if not boundary:
            raise InvalidRequest("The content type names no boundary.")
        self.photos = photos
        self.settings = settings
        self.fields: dict[str, Any] = {}
        self.images = 0
        self.finished = False
        callbacks: dict[str, Callable[..., None]] = {
            "on_part_begin": self.begin_part,
            "on_header_field": self.add_to_header_name,
            "on_header_value": self.add_to_header_value,
            "on_header_end": self.end_header,
            "on_headers_finished": self.read_headers,
            "on_part_data": self.add_to_part,
            "on_part_end": self.end_part,
            "on_end": self.finish,
        }
        self.parser = MultipartParser(boundary, callbacks)  # type: ignore[arg-type]

    def write(self, chunk: bytes) -> None:
        """The next bytes of the body."""
        try:
            self.parser.write(chunk)
        except FormParserError as error:
            raise InvalidRequest("The multipart body is malformed.") from error

    def close(self) -> dict[str, Any]:
        """The fields once the body has ended: photos as bytes, all else as text."""
        if not self.finished:
            raise InvalidRequest("The multipart body ends before its closing boundary.")
        return self.fields

    def begin_part(self) -> None:
        """Forget the part before."""
        self.headers: dict[str, bytes] = {}
        self.header_bytes = 0
        self.header_name = self.header_value = b""
        self.content = bytearray()

    def add_to_header_name(self, data: bytes, start: int, end: int) -> None:
        """More of a header's name."""
        self.header_name += self.take_header(data[start:end])

    def add_to_header_value(self, data: bytes, start: int, end: int) -> None:
        """More of a header's value."""
        self.header_value += self.take_header(data[start:end])

    def take_header(self, data: bytes) -> bytes:
        """A header holds a name, not a payload."""
        self.header_bytes += len(data)
        if self.header_bytes > MAX_HEADER_BYTES:
            raise InvalidRequest("A part's headers are too long.")
        return data

    def end_header(self) -> None:
        """A header is complete."""
        self.headers[self.header_name.decode("latin-1").lower()] = self.header_value
        self.header_name = self.header_value = b""

    def read_headers(self) -> None:
        """All headers of a part are there: which field it is, and how large it may get."""
        _, options = parse_options_header(self.headers.get("content-disposition", b""))
        self.name = options.get(b"name", b"").decode("utf-8", "replace")[:100]
        if not self.name:
            raise InvalidRequest("A part has no name.")
        if self.name in self.fields and not self.photos.get(self.name):
            raise InvalidRequest(f"The part {self.name!r} was sent twice.")
        if len(self.fields) >= MAX_PARTS:
            raise InvalidRequest(f"A form may have {MAX_PARTS} parts.")
        self.is_image = self.name in self.photos or b"filename" in options
        self.images += self.is_image
        if self.images > self.settings.max_images:
            limit = self.settings.max_images
            raise TooManyImages(f"A request may have {limit} images.", limit=limit)

    def add_to_part(self, data: bytes, start: int, end: int) -> None:
        """More of a part's content."""
        self.content += data[start:end]
        if self.is_image and len(self.content) > self.settings.max_image_bytes:
            limit = self.settings.max_image_bytes
            raise ImageTooLarge(f"An image may have {limit} bytes.", limit=limit, image=self.name)
        if not self.is_image and len(self.content) > MAX_FIELD_BYTES:
            raise InvalidRequest(f"The part {self.name!r} may have {MAX_FIELD_BYTES} bytes.")

    def end_part(self) -> None:
        """A part is complete."""
        if self.photos.get(self.name):
            self.fields.setdefault(self.name, []).append(bytes(self.content))
        elif self.name in self.photos:
            self.fields[self.name] = bytes(self.content)
        else:
            self.fields[self.name] = self.content.decode("utf-8", "replace")

    def finish(self) -> None:
        """The closing boundary was seen."""
        self.finished = True
