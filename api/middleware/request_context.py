"""The state of a request: one object in the ASGI scope, made by the outermost middleware."""

import re
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sameface.api.access.keys import ApiKey

REQUEST_ID = re.compile(r"[A-Za-z0-9._~-]{1,128}")
KEY = "sameface"  # the key of the context in the scope's state


class Deadline:
    """The deadline of a request; a batch renews it with every message received or sent."""

    def __init__(self, seconds: float) -> None:
        self._suspended = False
        self.renew(seconds)

    def renew(self, seconds: float) -> None:
        """Set the deadline to `seconds` from now."""
        self._seconds = seconds
        self._ends = time.monotonic() + seconds

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Suspend the deadline while the server works on a batch, and renew it after the block."""
        self._suspended = True
        try:
            yield
        finally:
            self._suspended = False
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
    caller: ApiKey | None = None  # set once the key is checked; None where the server has no keys
    problem: str | None = None  # the code of the problem that was answered


def context_of(scope: Scope) -> RequestContext:
    """The context of the request with this `scope`."""
    context: RequestContext = scope["state"][KEY]
    return context


class AddContext:
    """Gives every request its context; the request id is a valid `X-Request-ID` of the client, or new."""

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self.app = app
        self.seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Add the context to an HTTP request, and its id to the headers of the response."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        headers = Headers(scope=scope)
        sent = headers.get("x-request-id", "")
        request_id = sent if REQUEST_ID.fullmatch(sent) else uuid.uuid4().hex
        has_body = "transfer-encoding" in headers or headers.get("content-length", "0") != "0"
        scope.setdefault("state", {})[KEY] = RequestContext(request_id, Deadline(self.seconds), has_body)

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["X-Request-ID"] = request_id
            await send(message)

        return await self.app(scope, receive, send_with_id)
