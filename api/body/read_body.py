"""Reads a request's body while it streams in, multipart or JSON, into the fields that a route takes."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError
from python_multipart.multipart import parse_options_header
from starlette.concurrency import run_in_threadpool

from sameface.api.body.form import MAX_FIELD_BYTES, read_form
from sameface.api.errors import (
    BodyTooLarge,
    InvalidRequest,
    TooManyImages,
    UnsupportedMediaType,
    to_invalid_request,
)
from sameface.api.middleware.request_context import context_of
from sameface.api.schemas.fields import Photo
from sameface.api.settings import Settings
from sameface.model.errors import Overloaded

BASE64_GROWTH = 4 / 3
JSON_MARKS = b'{[,:"'  # none of them occurs in base64, so a body of photos has few, however long it is
MAX_JSON_MARKS = 200_000

Body = TypeVar("Body", bound=BaseModel)


class UploadBudget:
    """Bytes of all the bodies that are being read: what waits in the queue is bounded there, this is not."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.taken = 0

    def take(self, count: int) -> None:
        """Count bytes that are now held in memory."""
        if self.taken + count > self.limit:
            raise Overloaded("Too many uploads are under way; try again later.", retry_after_seconds=1)
        self.taken += count

    def give_back(self, count: int) -> None:
        """Bytes that are no longer held for a body."""
        self.taken -= count

    @contextmanager
    def reserved(self, count: int) -> Iterator[None]:
        """Hold `count` bytes for the block: a batch reserves what it may hold for as long as it lasts."""
        self.take(count)
        try:
            yield
        finally:
            self.give_back(count)


def body_of(schema: type[Body]) -> Callable[[Request], Awaitable[Body]]:
    """A dependency that reads the body into this schema."""
    photos = find_photos(schema)

    async def read(request: Request) -> Body:
        settings: Settings = request.app.state.settings
        images = sum(settings.max_images if many else 1 for many in photos.values())
        limit = int(images * settings.max_image_bytes * BASE64_GROWTH) + MAX_FIELD_BYTES
        kind, options = parse_options_header(request.headers.get("content-type", ""))
        if kind == b"multipart/form-data":
            chunks = limit_body(request, limit)
            return validate(schema, await read_form(chunks, options.get(b"boundary", b""), photos, settings))
        if kind == b"application/json":
            body = bytearray()
            async for chunk in limit_body(request, limit):
                body += chunk
            if len(body) <= MAX_FIELD_BYTES:  # not worth a thread
                parsed = parse_json(body, schema)
            else:
                parsed = await run_in_threadpool(parse_json, body, schema)
            limit_images(parsed, photos, settings.max_images)
            return parsed
        if not kind and not context_of(request.scope).has_body:
            return validate(schema, {})
        raise UnsupportedMediaType("Send multipart/form-data or application/json.")

    return read


def find_photos(schema: type[BaseModel]) -> dict[str, bool]:
    """The fields of a schema that are images, and whether each takes many."""
    kinds = {name: field.annotation for name, field in schema.model_fields.items()}
    images = (bytes, Photo | None, list[Photo])
    return {name: kind == list[Photo] for name, kind in kinds.items() if kind in images}


async def limit_body(request: Request, limit: int) -> AsyncIterator[bytes]:
    """The body's chunks, refusing it once it is larger than the largest valid one."""
    too_large = BodyTooLarge(f"This request may have {limit} bytes.", limit=limit)
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > limit:
        raise too_large
    budget: UploadBudget = request.app.state.uploads
    received = 0
    try:
        async for chunk in request.stream():
            budget.take(len(chunk))
            received += len(chunk)
            if received > limit:
                raise too_large
            yield chunk
    finally:
        budget.give_back(received)


def limit_images(body: BaseModel, photos: dict[str, bool], limit: int) -> None:
    """As many as a form may have."""
    if sum(len(getattr(body, name)) for name, many in photos.items() if many) > limit:
        raise TooManyImages(f"A request may have {limit} images.", limit=limit)


def parse_json(body: bytes | bytearray, schema: type[Body]) -> Body:
    """A JSON body, images as base64; one that is costly to parse is refused before it is parsed."""
    if sum(body.count(mark) for mark in JSON_MARKS) > MAX_JSON_MARKS:
        raise InvalidRequest("The JSON has far more values than this request takes.")
    try:
        return schema.model_validate_json(body)
    except ValidationError as error:
        if error.errors(include_input=False, include_url=False)[0]["type"] == "json_invalid":
            raise InvalidRequest("The body is not valid JSON.") from None
        raise refuse(error) from None


def validate(schema: type[Body], fields: Any) -> Body:
    """The fields as the schema wants them."""
    try:
        return schema.model_validate(fields)
    except ValidationError as error:
        raise refuse(error) from None


def refuse(error: ValidationError) -> InvalidRequest:
    """What pydantic found, without the input that it quotes."""
    return to_invalid_request(error.errors(include_input=False, include_url=False))
