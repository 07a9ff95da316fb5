"""What surrounds every request: its id, its time limit, a client that hangs up, and the last resort."""

import asyncio
import logging
import re
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sameface.api.body.read_body import has_body
from sameface.api.errors import TimedOut, internal_error, to_problem
from sameface.model.errors import SamefaceError

log = logging.getLogger("sameface.requests")

REQUEST_ID = re.compile(r"[A-Za-z0-9._~-]{1,128}")
DRAIN_SECONDS = 3.0
DRAIN_BYTES = 100_000_000


class RequestId:
    """Gives every request an id, its own if it brought a valid one, and every response the same."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection event."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        brought = Headers(scope=scope).get("x-request-id", "")
        request_id = brought if REQUEST_ID.fullmatch(brought) else uuid.uuid4().hex
        scope.setdefault("state", {})["request_id"] = request_id

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["X-Request-ID"] = request_id
            await send(message)

        return await self.app(scope, receive, send_with_id)


class RequestGuard:
    """Ends a request when its time is over or its client is gone, and answers for what nobody caught."""

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self.app = app
        self.seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection event."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        client = Client(receive, send, has_body=has_body(scope))
        deadline = scope["state"]["deadline"] = Deadline(self.seconds)
        answer = asyncio.ensure_future(self.app(scope, client.receive, client.send))
        hang_up = asyncio.ensure_future(client.wait_for_hang_up())
        try:
            while not (answer.done() or hang_up.done()) and deadline.left > 0:
                await asyncio.wait(
                    {answer, hang_up}, timeout=deadline.left, return_when=asyncio.FIRST_COMPLETED
                )
            failure = self.judge(answer, hang_up, scope)
        finally:
            answer.cancel()
            hang_up.cancel()
            await asyncio.wait({answer, hang_up})
        if failure and not client.answered:
            await to_problem(failure, scope)(scope, receive, client.send)
        return None

    def judge(
        self, answer: "asyncio.Future[None]", hang_up: "asyncio.Future[None]", scope: Scope
    ) -> SamefaceError | None:
        """What to tell the client, if anything is left to tell."""
        if not answer.done():
            return None if hang_up.done() else TimedOut(f"A request may take {self.seconds:g} seconds.")
        error = answer.exception()
        if error and not isinstance(error, ClientDisconnect):
            log.error("request %s failed", scope["state"]["request_id"], exc_info=error)
            return internal_error()
        return None


class Deadline:
    """When a request must be answered; a stream renews it for as long as it flows."""

    def __init__(self, seconds: float) -> None:
        self._suspended = False
        self.renew(seconds)

    def renew(self, seconds: float) -> None:
        """From now on, so long."""
        self._seconds = seconds
        self._ends = time.monotonic() + seconds

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """It does not run while the server is at work on a stream; then it starts anew."""
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
        """Seconds since anything moved: none while the server is at work."""
        return self._seconds - self.left


class Client:
    """The other end: passes messages on, and notices when it is gone once its request has arrived."""

    def __init__(self, receive: Receive, send: Send, *, has_body: bool) -> None:
        self.answered = False
        self._receive = receive
        self._send = send
        self._has_body = has_body
        self._answer_is_out = False
        self._arrived = asyncio.Event()
        self._gone = asyncio.Event()

    async def receive(self) -> Message:
        """The next part of the request; after its end, only the news that the client is gone."""
        if self._arrived.is_set():
            await self._gone.wait()
            return {"type": "http.disconnect"}
        message = await self._receive()
        if message["type"] == "http.disconnect" or not message.get("more_body", False):
            self._arrived.set()
        return message

    async def send(self, message: Message) -> None:
        """Pass an answer on; one that comes before the request's end also ends the connection."""
        self.answered = True
        refused = self._has_body and not self._arrived.is_set()
        if refused and message["type"] == "http.response.start":
            MutableHeaders(scope=message)["Connection"] = "close"
        last = message["type"] == "http.response.body" and not message.get("more_body", False)
        if last and refused:
            await self._send({**message, "more_body": True})
            await self._drain()
            message = {"type": "http.response.body"}
        self._answer_is_out = last
        await self._send(message)

    async def wait_for_hang_up(self) -> None:
        """Return when the client is gone; nobody else may read from the connection then."""
        await self._arrived.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if self._answer_is_out:  # then the server says so too, and the rest of the work may finish
            await asyncio.Event().wait()
        self._gone.set()

    async def _drain(self) -> None:
        """Read on for a moment: most clients look at an answer only when they have sent everything."""
        left = DRAIN_BYTES
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                while left > 0 and not self._arrived.is_set():
                    left -= len((await self.receive()).get("body", b""))
