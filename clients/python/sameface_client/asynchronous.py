"""The client for programs with an event loop of asyncio."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine, Iterable
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

import httpx

from sameface_client.answers import BatchEnrolled, BatchFailed, BatchIdentified
from sameface_client.batches import Batch
from sameface_client.connection import DEFAULT_URL, RETRIES, TIMEOUT_SECONDS, settings_of
from sameface_client.errors import SamefaceError
from sameface_client.operations.collection import CollectionOperations
from sameface_client.operations.faces import FacesOperations
from sameface_client.operations.keys import KeyOperations
from sameface_client.pages import Page, without_cursor
from sameface_client.requests import Attempts, Request, Steps, Wait, advance

Options = ParamSpec("Options")
Operations = TypeVar("Operations")
Answer = TypeVar("Answer")
Entry = TypeVar("Entry")
Item = TypeVar("Item")
BatchAnswer = TypeVar("BatchAnswer", bound=BatchIdentified | BatchEnrolled)


def connect_async(
    url: str = DEFAULT_URL,
    key: str | None = None,
    *,
    timeout_seconds: float = TIMEOUT_SECONDS,
    retries: int = RETRIES,
) -> "AsyncFaces":
    """A client of the server at `url`; nothing is sent yet.

    The API `key` is that of the variable SAMEFACE_API_KEY if none is given.
    """
    http = httpx.AsyncClient(**settings_of(url, key, timeout_seconds))
    return AsyncFaces(AsyncConnection(http, retries), FacesOperations())


class AsyncConnection:
    """Runs operations: sends their requests, again where that is safe."""

    def __init__(self, http: httpx.AsyncClient, retries: int) -> None:
        self.http = http
        self.retries = retries

    async def run(self, steps: Steps[Answer]) -> Answer:
        """The answer of an operation."""
        outcome: bytes | SamefaceError | None = None
        while isinstance(step := await asyncio.to_thread(advance, steps, outcome), Request):
            outcome = await self.send(step)
        return step.answer

    async def send(self, request: Request) -> bytes | SamefaceError:
        """The content of the response, or why there is none."""
        if self.http.is_closed:
            raise ValueError("these faces are closed")
        attempts = Attempts(request, self.retries)
        outcome: httpx.Response | httpx.RequestError
        while True:
            try:
                outcome = await self.http.request(**request.to_arguments())
            except httpx.RequestError as error:
                outcome = error
            verdict = attempts.judge(outcome)
            if not isinstance(verdict, Wait):
                return verdict
            await asyncio.sleep(verdict.seconds)


class AsyncCaller(Generic[Operations]):
    """Operations, and the connection that runs them."""

    def __init__(self, connection: AsyncConnection, operations: Operations) -> None:
        self._connection = connection
        self._operations = operations


def awaitable(
    operation: Callable[Concatenate[Operations, Options], Steps[Answer]],
) -> Callable[Concatenate[AsyncCaller[Operations], Options], Coroutine[Any, Any, Answer]]:
    """The method that runs an operation and returns its answer."""

    @wraps(operation)
    async def method(
        self: AsyncCaller[Operations], /, *args: Options.args, **kwargs: Options.kwargs
    ) -> Answer:
        return await self._connection.run(operation(self._operations, *args, **kwargs))

    return method


def awaitable_batch(
    begin: Callable[Concatenate[Operations, Options], Batch[Entry, BatchAnswer]],
) -> Callable[
    Concatenate[AsyncCaller[Operations], Iterable[Entry] | AsyncIterable[Entry], Options],
    AsyncIterator[BatchAnswer | BatchFailed],
]:
    """The method that takes entries from either kind of iterable and yields their answers, block by block."""

    async def method(
        self: AsyncCaller[Operations],
        entries: Iterable[Entry] | AsyncIterable[Entry],
        /,
        *args: Options.args,
        **kwargs: Options.kwargs,
    ) -> AsyncIterator[BatchAnswer | BatchFailed]:
        batch = begin(self._operations, *args, **kwargs)
        async for entry in iterate(entries):
            if batch.add(entry):
                for answer in await self._connection.run(batch.send()):
                    yield answer
        for answer in await self._connection.run(batch.send()):
            yield answer

    method.__doc__ = begin.__doc__
    return method


async def iterate(entries: Iterable[Entry] | AsyncIterable[Entry]) -> AsyncIterator[Entry]:
    """Yield the entries of either kind of iterable."""
    if isinstance(entries, AsyncIterable):
        async for entry in entries:
            yield entry
    else:
        for entry in entries:
            yield entry


def awaitable_pages(
    read_page: Callable[Concatenate[Operations, str, Options], Steps[Page[Item]]],
) -> Callable[Concatenate[AsyncCaller[Operations], Options], AsyncIterator[Item]]:
    """The method that yields the items of all pages of a list, each page read when it is needed."""

    @wraps(read_page)
    async def method(
        self: AsyncCaller[Operations], /, *args: Options.args, **kwargs: Options.kwargs
    ) -> AsyncIterator[Item]:
        cursor: str | None = ""
        while cursor is not None:
            page = await self._connection.run(read_page(self._operations, cursor, *args, **kwargs))
            for item in page.items:
                yield item
            cursor = page.next_cursor

    method.__signature__ = without_cursor(read_page)  # type: ignore[attr-defined]
    return method


class AsyncFaces(AsyncCaller[FacesOperations]):
    """Verifies, detects and embeds faces, and opens collections; for the tasks of one event loop."""

    verify = awaitable(FacesOperations.verify)
    detect = awaitable(FacesOperations.detect)
    embed = awaitable(FacesOperations.embed)
    collections = awaitable(FacesOperations.collections)
    models = awaitable(FacesOperations.models)
    calibrations = awaitable(FacesOperations.calibrations)
    audit = awaitable_pages(FacesOperations.audit)
    review = awaitable(FacesOperations.review)

    @property
    def keys(self) -> "AsyncKeys":
        """The API keys that the caller's own may manage."""
        return AsyncKeys(self._connection, KeyOperations())

    def collection(self, name: str, *, store_crops: bool = False) -> "AsyncCollection":
        """The collection of this name; the first enrolment creates it, with this `store_crops`."""
        return AsyncCollection(self._connection, CollectionOperations(name, store_crops=store_crops))

    async def close(self) -> None:
        """Close the connections."""
        await self._connection.http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncCollection(AsyncCaller[CollectionOperations]):
    """People that are searched together."""

    enroll = awaitable(CollectionOperations.enroll)
    enroll_or_add = awaitable(CollectionOperations.enroll_or_add)
    enroll_many = awaitable_batch(CollectionOperations.enroll_many)
    add_faces = awaitable(CollectionOperations.add_faces)
    identify = awaitable(CollectionOperations.identify)
    identify_many = awaitable_batch(CollectionOperations.identify_many)
    verify = awaitable(CollectionOperations.verify)
    describe = awaitable(CollectionOperations.describe)
    person = awaitable(CollectionOperations.person)
    update = awaitable(CollectionOperations.update)
    forget = awaitable(CollectionOperations.forget)
    forget_face = awaitable(CollectionOperations.forget_face)
    delete = awaitable(CollectionOperations.delete)
    people = awaitable_pages(CollectionOperations.people)

    @property
    def name(self) -> str:
        """The collection's name."""
        return self._operations.name


class AsyncKeys(AsyncCaller[KeyOperations]):
    """The API keys of a server."""

    create = awaitable(KeyOperations.create)
    list = awaitable_pages(KeyOperations.list)
    own = awaitable(KeyOperations.own)
    get = awaitable(KeyOperations.get)
    rotate = awaitable(KeyOperations.rotate)
    revoke = awaitable(KeyOperations.revoke)
