"""A request as a value, and what becomes of its outcome: an answer, an error, or another attempt."""

import random
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

import httpx

from sameface_client.errors import ConnectionFailed, SamefaceError, UnexpectedAnswer, to_error

Answer = TypeVar("Answer")

FIRST_WAIT_SECONDS = 0.25  # doubled with every attempt, where the server says nothing
LONGEST_WAIT_SECONDS = 60.0  # that a server may ask for; beyond it the error is raised
NEVER_ARRIVED = (httpx.ConnectError, httpx.ConnectTimeout)
BROKEN = (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError)


@dataclass(frozen=True, slots=True)
class Body:
    """The content of a request in a format of its own."""

    content: bytes
    media_type: str


@dataclass(frozen=True, slots=True)
class Request:
    """One request; `repeatable` says that sending it twice does no more than sending it once."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, str] = field(default_factory=dict)
    files: Sequence[tuple[str, bytes]] = ()
    json: Any = None
    body: Body | None = None
    idempotency_key: str | None = None
    repeatable: bool = True

    def to_arguments(self) -> dict[str, Any]:
        """The arguments of httpx's `request`."""
        arguments: dict[str, Any] = {"method": self.method, "url": self.path, "params": self.query}
        headers = {"Idempotency-Key": self.idempotency_key} if self.idempotency_key else {}
        if self.body:
            headers["Content-Type"] = self.body.media_type
            arguments["content"] = self.body.content
        elif self.files:
            arguments |= {"data": self.form, "files": list(self.files)}
        elif self.json is not None:
            arguments["json"] = self.json
        return arguments | {"headers": headers}


# An operation: it yields requests, is sent the content of their responses, and returns its answer.
Steps: TypeAlias = Generator[Request, bytes, Answer]


@dataclass(frozen=True, slots=True)
class Done(Generic[Answer]):
    """The end of an operation."""

    answer: Answer


def advance(steps: Steps[Answer], outcome: bytes | SamefaceError | None) -> Request | Done[Answer]:
    """Give an operation the outcome of its last request; returns the next request, or the end."""
    try:
        if isinstance(outcome, SamefaceError):
            return steps.throw(outcome)
        return next(steps) if outcome is None else steps.send(outcome)
    except StopIteration as stop:
        return Done(stop.value)


@dataclass(frozen=True, slots=True)
class Wait:
    """The request is to be sent again after some seconds."""

    seconds: float


class Attempts:
    """Judges the outcome of each attempt to send a request, of which there may be `retries` more."""

    def __init__(self, request: Request, retries: int) -> None:
        self.request = request
        self.left = retries
        self.pause = FIRST_WAIT_SECONDS

    def judge(self, outcome: httpx.Response | httpx.RequestError) -> bytes | SamefaceError | Wait:
        """The content of a success, the error of a failure, or how long to wait before the next attempt."""
        if isinstance(outcome, httpx.Response) and outcome.is_success:
            return outcome.content
        seconds = self.find_wait(outcome)
        if self.left <= 0 or seconds is None or seconds > LONGEST_WAIT_SECONDS:
            return describe_failure(outcome)
        self.left -= 1
        self.pause *= 2
        return Wait(seconds * random.uniform(1, 1.25))  # so that many clients do not return at once

    def find_wait(self, outcome: httpx.Response | httpx.RequestError) -> float | None:
        """The seconds before another attempt, None if there must be none.

        A request that the server refused for now, or that never arrived, is sent again whatever it is. One
        that may have been carried out is sent again only if it is repeatable, and none after a read time-out.
        """
        if isinstance(outcome, httpx.Response):
            told = outcome.headers.get("Retry-After", "")
            if outcome.status_code in (429, 503) and told.isdecimal():
                return float(told)
            by_proxy = outcome.status_code in (502, 503, 504) and not read_problem(outcome)
            return self.pause if by_proxy and self.request.repeatable else None
        again = isinstance(outcome, NEVER_ARRIVED) or (
            self.request.repeatable and isinstance(outcome, BROKEN)
        )
        return self.pause if again else None


def read_problem(response: httpx.Response) -> dict[str, Any] | None:
    """The problem+json of a response, None if it is something else."""
    if response.headers.get("Content-Type") != "application/problem+json":
        return None
    try:
        problem = response.json()
    except ValueError:
        return None
    return problem if isinstance(problem, dict) and "code" in problem else None


def describe_failure(outcome: httpx.Response | httpx.RequestError) -> SamefaceError:
    """The exception of a response that is no success, or of a failed connection."""
    if isinstance(outcome, httpx.Response):
        problem = read_problem(outcome)
        if problem:
            return to_error(problem)
        return UnexpectedAnswer(
            f"Something at {outcome.url.host} answered {outcome.status_code} that is no sameface server.",
            status=outcome.status_code,
            request_id=outcome.headers.get("X-Request-ID"),
        )
    why = "it was silent for too long" if isinstance(outcome, httpx.TimeoutException) else str(outcome)
    failure = ConnectionFailed(f"The server at {outcome.request.url.host} cannot be used: {why}.")
    failure.__cause__ = outcome
    return failure
