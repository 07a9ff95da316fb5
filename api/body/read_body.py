"""Reads the body of a request, multipart or JSON, into the route's schema while it streams in."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError
from python_multipart.multipart import parse_options_header
from starlette.concurrency import run_in_threadpool

from sameface.api.access.reserve import take_photos
from sameface.api.body.form import MAX_FIELD_BYTES, read_form
from sameface.api.errors import (
    BodyTooLarge,
    InvalidRequest,
    TooManyImages,
    UnsupportedMediaType,
    to_invalid_request,
)
from sameface.api.request_context import context_of
from sameface.api.schemas.fields import Photo
from sameface.api.settings import Settings
from sameface.model.errors import Overloaded

BASE64_GROWTH = 4 / 3
JSON_MARKS = b'{[,:"'  # base64 has none of them, so a body of photos has few, however long it is
MAX_JSON_MARKS = 200_000
BATCH_SHARE = 0.75  # of the upload budget, for all batches together

Body = TypeVar("Body", bound=BaseModel)


class UploadBudget:
    """Limits the bytes of all bodies that are being read, to which the limit of the queue does not apply."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.taken = 0
        self.in_batches = 0  # of what is taken

    def take(self, count: int) -> None:
        """Reserve `count` bytes; raises Overloaded beyond the limit."""
        if self.taken + count > self.limit:
            raise Overloaded("Too many uploads are under way; try again later.", retry_after_seconds=1)
        self.taken += count

    def give_back(self, count: int) -> None:
        """Release `count` reserved bytes."""
        self.taken -= count

    @contextmanager
    def reserved(self, count: int) -> Iterator["Reservation"]:
        """Reserve `count` bytes for the block, which may change the reservation as it goes."""
        reservation = Reservation(self)
        reservation.grow(count)
        try:
            yield reservation
        finally:
            reservation.grow(-reservation.count)


class Reservation:
    """The bytes that one batch has reserved in the upload budget, of which all batches get `BATCH_SHARE`."""

    def __init__(self, budget: UploadBudget) -> None:
        self.budget = budget
        self.count = 0

    def grow(self, count: int) -> None:
        """Hold `count` bytes more, or fewer; raises Overloaded, and changes nothing, if there is no room."""
        others = self.budget.in_batches - self.count
        if count > 0 and others and others + self.count + count > BATCH_SHARE * self.budget.limit:
            raise Overloaded("Too many batches are under way; try again later.", retry_after_seconds=1)
        self.budget.take(count)
        self.budget.in_batches += count
        self.count += count


def body_of(schema: type[Body]) -> Callable[[Request], Awaitable[Body]]:
    """A FastAPI dependency that reads the body into `schema`."""
    photos = find_photos(schema)

    async def read_and_count(request: Request) -> Body:
        body = await read(request)
        await take_photos(context_of(request.scope).allowance, count_photos(body, photos))
        return body

    async def read(request: Request) -> Body:
        settings: Settings = request.app.state.settings
        images = sum(settings.max_images if many else 1 for many in photos.values())
        limit = int(images * settings.max_image_bytes * BASE64_GROWTH) + MAX_FIELD_BYTES
        if not context_of(request.scope).has_body:  # whatever its type: clients name one out of habit
            return validate(schema, {})
        kind, options = parse_options_header(request.headers.get("content-type", ""))
        if kind == b"multipart/form-data":
            chunks = limit_body(request, limit)
            return validate(schema, await read_form(chunks, options.get(b"boundary", b""), photos, settings))
        if kind == b"application/json":
            parsed = await parse_soon(await collect_json(request, limit), schema)
            limit_images(parsed, photos, settings.max_images)
            return parsed
        hint = f", such as curl -F {next(iter(photos))}=@photo.jpg" if photos else ""
        raise UnsupportedMediaType(f"Send multipart/form-data{hint}, or application/json.")

    return read_and_count if photos else read


def count_photos(body: BaseModel, photos: dict[str, bool]) -> int:
    """The number of photos in a body whose image fields are `photos`."""
    sent = {name: getattr(body, name) for name in photos}
    return sum(len(sent[name]) if many else sent[name] is not None for name, many in photos.items())


def find_photos(schema: type[BaseModel]) -> dict[str, bool]:
    """The image fields of `schema`, each with whether it takes several images."""
    kinds = {name: field.annotation for name, field in schema.model_fields.items()}
    images = (bytes, Photo | None, list[Photo])
    return {name: kind == list[Photo] for name, kind in kinds.items() if kind in images}


async def limit_body(request: Request, limit: int) -> AsyncIterator[bytes]:
    """Yield the body's chunks, counted against the upload budget; raises BodyTooLarge over `limit` bytes."""
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > limit:
        raise body_too_large(limit)
    budget: UploadBudget = request.app.state.uploads
    received = 0
    try:
        async for chunk in request.stream():
            budget.take(len(chunk))
            received += len(chunk)
            if received > limit:
                raise body_too_large(limit)
            yield chunk
    finally:
        budget.give_back(received)


def body_too_large(limit: int) -> BodyTooLarge:
    """The error for a body of more than `limit` bytes."""
    return BodyTooLarge(f"This request may have {limit} bytes.", limit=limit)


def limit_images(body: BaseModel, photos: dict[str, bool], limit: int) -> None:
    """Refuse a JSON body with more than `limit` images, the limit of a form."""
    if sum(len(getattr(body, name)) for name, many in photos.items() if many) > limit:
        raise TooManyImages(f"A request may have {limit} images.", limit=limit)


async def collect_json(request: Request, limit: int) -> bytearray:
    """The JSON of a body, not parsed yet; raises over `limit` bytes or too many values."""
    body, marks = bytearray(), 0
    async for chunk in limit_body(request, limit):
        marks += count_marks(chunk)
        refuse_many_marks(marks)
        body += chunk
    return body


async def parse_soon(body: bytearray, schema: type[Body]) -> Body:
    """Parse a JSON body into `schema`, on a thread unless it is short."""
    if len(body) <= MAX_FIELD_BYTES:
        return parse_json(body, schema)
    return await run_in_threadpool(parse_json, body, schema)


def parse_json(body: bytes | bytearray, schema: type[Body]) -> Body:
    """Parse a JSON body into `schema`; too many values are refused unparsed, for the time they would take."""
    refuse_many_marks(count_marks(body))
    try:
        return schema.model_validate_json(body)
    except ValidationError as error:
        failure = refuse(error, schema)
    raise failure


def count_marks(content: bytes | bytearray) -> int:
    """The marks between values in a piece of JSON."""
    return sum(content.count(mark) for mark in JSON_MARKS)


def refuse_many_marks(count: int) -> None:
    """Raise InvalidRequest if the JSON has more than `MAX_JSON_MARKS` quotes, colons, commas and brackets."""
    if count > MAX_JSON_MARKS:
        raise InvalidRequest("The JSON has far more values than this request takes.")


def validate(schema: type[Body], fields: Any) -> Body:
    """Validate `fields` against `schema`; raises InvalidRequest."""
    try:
        return schema.model_validate(fields)
    except ValidationError as error:
        failure = refuse(error, schema)
    raise failure


def refuse(error: ValidationError, schema: type[BaseModel]) -> InvalidRequest:
    """An InvalidRequest from pydantic's `error`, without the input that pydantic quotes.

    It is raised once `error` is gone: as its context, `error` would hold the frames that hold it, and Python
    cannot collect a cycle that leads through pydantic.
    """
    faults = error.errors(include_input=False, include_url=False)
    if faults[0]["type"] == "json_invalid":
        return InvalidRequest("The body is not valid JSON.")
    return to_invalid_request(faults, schema.model_fields)
