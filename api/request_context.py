"""What the server knows about one request, from its first byte to its last: one object in the ASGI scope."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from starlette.types import Scope

from sameface.api.access.keys import ApiKey

KEY = "sameface"  # under which the scope's state holds it


class Deadline:
    """When a request must be answered; a batch renews it for as long as something moves."""

    def __init__(self, seconds: float) -> None:
        self._suspended = False
        self.renew(seconds)

    def renew(self, seconds: float) -> None:
        """Let it end `seconds` from now."""
        self._seconds = seconds
        self._ends = time.monotonic() + seconds

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Stop it while the server works on a batch; at the end of the block it starts anew."""
        self._suspended = True
        try:
            yield
        finally:
            self._suspended = False
            self.renew(self._seconds)

    @property
    def left(self) -> float:
        """Seconds until it is over."""
        return self._seconds if self._suspended else self._ends - time.monotonic()

    @property
    def idle(self) -> float:
        """Seconds since anything moved: 0 while the server works."""
        return self._seconds - self.left


@dataclass(slots=True)
class RequestContext:
    """The state of one request."""

    request_id: str
    deadline: Deadline
    caller: ApiKey | None = None  # set once the key is checked; None where the server has no keys
    problem: str | None = None  # the code of the problem that was answered


def context_of(scope: Scope) -> RequestContext:
    """The context of the request that this scope belongs to."""
    context: RequestContext = scope["state"][KEY]
    return context


def put_context(scope: Scope, context: RequestContext) -> None:
    """Attach the context to the scope; Starlette hands the scope's state on to routes."""
    scope.setdefault("state", {})[KEY] = context
