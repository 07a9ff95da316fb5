"""The client for programs without an event loop."""

import time
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Concatenate, Generic, ParamSpec, Self, TypeVar

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


def connect(
    url: str = DEFAULT_URL,
    key: str | None = None,
    *,
    timeout_seconds: float = TIMEOUT_SECONDS,
    retries: int = RETRIES,
) -> "Faces":
    """A client of the server at `url`; nothing is sent yet.

    The API `key` is that of the variable SAMEFACE_API_KEY if none is given.
    """
    return Faces(
        Connection(httpx.Client(**settings_of(url, key, timeout_seconds)), retries), FacesOperations()
    )


class Connection:
    """Runs operations: sends their requests, again where that is safe."""

    def __init__(self, http: httpx.Client, retries: int) -> None:
        self.http = http
        self.retries = retries

    def run(self, steps: Steps[Answer]) -> Answer:
        """The answer of an operation."""
        outcome: bytes | SamefaceError | None = None
        while isinstance(step := advance(steps, outcome), Request):
            outcome = self.send(step)
        return step.answer

    def send(self, request: Request) -> bytes | SamefaceError:
        """The content of the response, or why there is none."""
        if self.http.is_closed:
            raise ValueError("these faces are closed")
        attempts = Attempts(request, self.retries)
        outcome: httpx.Response | httpx.RequestError
        while True:
            try:
                outcome = self.http.request(**request.to_arguments())
            except httpx.RequestError as error:
                outcome = error
            verdict = attempts.judge(outcome)
            if not isinstance(verdict, Wait):
                return verdict
            time.sleep(verdict.seconds)


class Caller(Generic[Operations]):
    """Operations, and the connection that runs them."""

    def __init__(self, connection: Connection, operations: Operations) -> None:
        self._connection = connection
        self._operations = operations


def blocking(
    operation: Callable[Concatenate[Operations, Options], Steps[Answer]],
) -> Callable[Concatenate[Caller[Operations], Options], Answer]:
    """The method that runs an operation and returns its answer."""

    @wraps(operation)
    def method(self: Caller[Operations], /, *args: Options.args, **kwargs: Options.kwargs) -> Answer:
        return self._connection.run(operation(self._operations, *args, **kwargs))

    return method


def blocking_batch(
    begin: Callable[Concatenate[Operations, Options], Batch[Entry, BatchAnswer]],
) -> Callable[Concatenate[Caller[Operations], Iterable[Entry], Options], Iterator[BatchAnswer | BatchFailed]]:
    """The method that takes entries from an iterable and yields their answers, block by block."""

    def method(
        self: Caller[Operations], entries: Iterable[Entry], /, *args: Options.args, **kwargs: Options.kwargs
    ) -> Iterator[BatchAnswer | BatchFailed]:
        batch = begin(self._operations, *args, **kwargs)
        for entry in entries:
            if batch.add(entry):
                yield from self._connection.run(batch.send())
        yield from self._connection.run(batch.send())

    method.__doc__ = begin.__doc__
    return method


def blocking_pages(
    read_page: Callable[Concatenate[Operations, str, Options], Steps[Page[Item]]],
) -> Callable[Concatenate[Caller[Operations], Options], Iterator[Item]]:
    """The method that yields the items of all pages of a list, each page read when it is needed."""

    @wraps(read_page)
    def method(self: Caller[Operations], /, *args: Options.args, **kwargs: Options.kwargs) -> Iterator[Item]:
        cursor: str | None = ""
        while cursor is not None:
            page = self._connection.run(read_page(self._operations, cursor, *args, **kwargs))
            yield from page.items
            cursor = page.next_cursor

    method.__signature__ = without_cursor(read_page)  # type: ignore[attr-defined]
    return method


class Faces(Caller[FacesOperations]):
    """Verifies, detects and embeds faces, and opens collections; safe to use from any number of threads."""

    verify = blocking(FacesOperations.verify)
    detect = blocking(FacesOperations.detect)
    embed = blocking(FacesOperations.embed)
    collections = blocking(FacesOperations.collections)
    models = blocking(FacesOperations.models)
    calibrations = blocking(FacesOperations.calibrations)
    audit = blocking_pages(FacesOperations.audit)
    review = blocking(FacesOperations.review)

    @property
    def keys(self) -> "Keys":
        """The API keys that the caller's own may manage."""
        return Keys(self._connection, KeyOperations())

    def collection(self, name: str, *, store_crops: bool = False) -> "Collection":
        """The collection of this name; the first enrolment creates it, with this `store_crops`."""
        return Collection(self._connection, CollectionOperations(name, store_crops=store_crops))

    def close(self) -> None:
        """Close the connections."""
        self._connection.http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Collection(Caller[CollectionOperations]):
    """People that are searched together."""

    enroll = blocking(CollectionOperations.enroll)
    enroll_or_add = blocking(CollectionOperations.enroll_or_add)
    enroll_many = blocking_batch(CollectionOperations.enroll_many)
    add_faces = blocking(CollectionOperations.add_faces)
    identify = blocking(CollectionOperations.identify)
    identify_many = blocking_batch(CollectionOperations.identify_many)
    verify = blocking(CollectionOperations.verify)
    describe = blocking(CollectionOperations.describe)
    person = blocking(CollectionOperations.person)
    update = blocking(CollectionOperations.update)
    forget = blocking(CollectionOperations.forget)
    forget_face = blocking(CollectionOperations.forget_face)
    delete = blocking(CollectionOperations.delete)
    people = blocking_pages(CollectionOperations.people)

    @property
    def name(self) -> str:
        """The collection's name."""
        return self._operations.name


class Keys(Caller[KeyOperations]):
    """The API keys of a server."""

    create = blocking(KeyOperations.create)
    list = blocking_pages(KeyOperations.list)
    own = blocking(KeyOperations.own)
    get = blocking(KeyOperations.get)
    rotate = blocking(KeyOperations.rotate)
    revoke = blocking(KeyOperations.revoke)
