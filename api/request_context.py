"""The state of a request: one object in the ASGI scope, put there by the request meter."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from starlette.types import Scope

from sameface.api.middleware.traceparent import TraceParent
from sameface.model.access.keys import ANYBODY
from sameface.model.access.limits.limits import UNCOUNTED, Allowance
from sameface.model.errors import SamefaceError
from sameface.model.store.access.api_key import ApiKey

KEY = "sameface"  # the key of the context in the scope's state


class Deadline:
    """The deadline of a request; a batch renews it with every message received or sent."""

    def __init__(self, seconds: float) -> None:
        self._suspended = 0  # blocks that are worked on
        self.renew(seconds)

    def renew(self, seconds: float) -> None:
        """Set the deadline to `seconds` from now."""
        self._seconds = seconds
        self._ends = time.monotonic() + seconds

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Suspend the deadline while the server works on a batch, and renew it after the block."""
        self._suspended += 1
        try:
            yield
        finally:
            self._suspended -= 1
            self.renew(self._seconds)

    @property
    def left(self) -> float:
        """Seconds until the deadline; its full time while it is suspended."""
        return self._seconds if self._suspended else self._ends - time.monotonic()

    @property
    def idle(self) -> float:
        """Seconds since the deadline was renewed; 0 while it is suspended."""
        return self._seconds - self.left


@dataclass(slots=True)
class RequestContext:
    """The state of one request, set by middleware and dependencies."""

    request_id: str
    deadline: Deadline
    has_body: bool  # whether the headers announce a body
    admitted: bool = False  # whether the caller may call at all
    refusal: SamefaceError | None = None  # or why not
    caller: ApiKey | None = None  # set once the key is checked; None where the server has no keys
    allowance: Allowance = UNCOUNTED  # what the caller's limits leave to this request
    problem: str | None = None  # the code of the problem that was answered
    trace: TraceParent | None = None  # the server's span or, where it makes none, the caller's

    @property
    def caller_id(self) -> str:
        """The id of the caller's key, for logs, metrics and traces."""
        return (self.caller or ANYBODY).key_id


_current: ContextVar[RequestContext | None] = ContextVar("request", default=None)


def begin_request(scope: Scope, context: RequestContext) -> None:
    """Put `context` into the request's `scope` and into its task, which ends with the request."""
    scope.setdefault("state", {})[KEY] = context
    _current.set(context)


def current_context() -> RequestContext | None:
    """The context of the request that this task or thread works for; None outside of requests."""
    return _current.get()


def find_path(scope: Scope) -> str:
    """The path of a request as routes have it, without the prefix that a proxy has put before it."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))


def lies_under(path: str, prefix: str) -> bool:
    """Whether a path begins with `prefix`; under the prefix `/` is the path `/` alone."""
    return path == prefix if prefix == "/" else path.startswith(prefix)


def context_of(scope: Scope) -> RequestContext:
    """The context of the request with this `scope`."""
    context: RequestContext = scope["state"][KEY]
    return context
