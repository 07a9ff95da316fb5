"""Reads a request's body while it streams in, multipart or JSON, into the fields that a route takes."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.concurrency import run_in_threadpool

from api.errors import BodyTooLarge, InvalidRequest, TooManyImages, UnsupportedMediaType
from api.settings import Settings
from model.errors import ImageTooLarge

MAX_FIELD_BYTES = 64_000  # of a form field that is no image
MAX_HEADER_BYTES = 8_000  # of one part's headers
BASE64_GROWTH = 4 / 3

Body = TypeVar("Body", bound=BaseModel)


def body_of(schema: type[Body]) -> Callable[[Request], Awaitable[Body]]:
    """A dependency that reads the body into this schema."""
    images = len([name for name in schema.model_fields if is_photo(schema, name)])

    async def read(request: Request) -> Body:
        settings: Settings = request.app.state.settings
        limit = int(images * settings.max_image_bytes * BASE64_GROWTH) + MAX_FIELD_BYTES
        kind, options = parse_options_header(request.headers.get("content-type", ""))
        if kind == b"multipart/form-data":
            form = FormReader(options.get(b"boundary", b""), settings)
            async for chunk in limit_body(request, limit):
                form.write(chunk)
            return schema.model_validate(to_fields(form.close(), schema))
        if kind == b"application/json":
            body = bytearray()
            async for chunk in limit_body(request, limit):
                body += chunk
            return await run_in_threadpool(parse_json, body, schema)
        raise UnsupportedMediaType("Send multipart/form-data or application/json.")

    return read


def is_photo(schema: type[BaseModel], name: str) -> bool:
    """Whether the schema has such a field and it is an image."""
    return name in schema.model_fields and schema.model_fields[name].annotation is bytes


async def limit_body(request: Request, limit: int) -> AsyncIterator[bytes]:
    """The body's chunks, refusing it once it is larger than the largest valid one."""
    too_large = BodyTooLarge(f"This request may have {limit} bytes.", limit=limit)
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > limit:
        raise too_large
    received = 0
    async for chunk in request.stream():
        received += len(chunk)
        if received > limit:
            raise too_large
        yield chunk


def parse_json(body: bytearray, schema: type[Body]) -> Body:
    """A JSON body, images as base64."""
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest("The body is not valid JSON.") from error
    return schema.model_validate(fields)


def to_fields(parts: list[tuple[str, bytes]], schema: type[BaseModel]) -> dict[str, Any]:
    """Form parts as the schema's fields: images stay bytes, all else is text."""
    fields: dict[str, Any] = {}
    for name, content in parts:
        if name in fields:
            raise InvalidRequest(f"The part {name!r} was sent twice.")
        fields[name] = content if is_photo(schema, name) else content.decode("utf-8", "replace")
    return fields


class FormReader:
    """Collects the parts of a multipart body, refusing a part as soon as it is too large."""

    def __init__(self, boundary: bytes, settings: Settings) -> None:
        if not boundary:
            raise InvalidRequest("The content type names no boundary.")
        self.settings = settings
        self.parts: list[tuple[str, bytes]] = []
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

    def close(self) -> list[tuple[str, bytes]]:
        """Names and contents of all parts, once the body has ended."""
        if not self.finished:
            raise InvalidRequest("The multipart body ends before its closing boundary.")
        return self.parts

    def begin_part(self) -> None:
        """Forget the part before."""
        self.headers: dict[str, bytes] = {}
        self.header_name = self.header_value = b""
        self.content = bytearray()

    def add_to_header_name(self, data: bytes, start: int, end: int) -> None:
        """More of a header's name."""
        self.header_name += data[start:end]
        self.refuse_long_header()

    def add_to_header_value(self, data: bytes, start: int, end: int) -> None:
        """More of a header's value."""
        self.header_value += data[start:end]
        self.refuse_long_header()

    def refuse_long_header(self) -> None:
        """A header holds a name, not a payload."""
        if len(self.header_name) + len(self.header_value) > MAX_HEADER_BYTES:
            raise InvalidRequest("A part's header is too long.")

    def end_header(self) -> None:
        """A header is complete."""
        self.headers[self.header_name.decode("latin-1").lower()] = self.header_value
        self.header_name = self.header_value = b""

    def read_headers(self) -> None:
        """All headers of a part are there: which field it is, and how large it may get."""
        _, options = parse_options_header(self.headers.get("content-disposition", b""))
        self.name = options.get(b"name", b"").decode("utf-8", "replace")
        if not self.name:
            raise InvalidRequest("A part has no name.")
        self.is_image = b"filename" in options
        self.images += self.is_image
        if self.images > self.settings.max_images:
            raise TooManyImages(
                f"A request may have {self.settings.max_images} images.", limit=self.settings.max_images
            )

    def add_to_part(self, data: bytes, start: int, end: int) -> None:
        """More of a part's content."""
        self.content += data[start:end]
        limit = self.settings.max_image_bytes if self.is_image else MAX_FIELD_BYTES
        if len(self.content) > limit:
            raise ImageTooLarge(
                f"The part {self.name!r} may have {limit} bytes.", limit=limit, image=self.name
            )

    def end_part(self) -> None:
        """A part is complete."""
        self.parts.append((self.name, bytes(self.content)))

    def finish(self) -> None:
        """The closing boundary was seen."""
        self.finished = True
