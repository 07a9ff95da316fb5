"""Cancels a request when its deadline is over or its client has left, and answers uncaught exceptions."""

import asyncio
import logging
from contextlib import suppress

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sameface.api.errors import TimedOut, internal_error, to_problem
from sameface.api.request_context import RequestContext, context_of
from sameface.model.errors import SamefaceError

log = logging.getLogger("sameface.requests")

DRAIN_SECONDS = 3.0
DRAIN_BYTES = 100_000_000


class TimeLimit:
    """Runs the application as a task that is cancelled when the deadline is over or the client hangs up."""

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self.app = app
        self.seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run an HTTP request until it is answered, its deadline is over or its client hangs up."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        context = context_of(scope)
        client = Client(receive, send, has_body=context.has_body)
        deadline = context.deadline
        answer = asyncio.ensure_future(self.app(scope, client.receive, client.send))
        hang_up = asyncio.ensure_future(client.wait_for_hang_up())
        try:
            while not (answer.done() or hang_up.done()) and deadline.left > 0:
                await asyncio.wait(
                    {answer, hang_up}, timeout=deadline.left, return_when=asyncio.FIRST_COMPLETED
                )
            failure = self.judge(answer, hang_up, context)
        finally:
            answer.cancel()
            hang_up.cancel()
            await asyncio.wait({answer, hang_up})
        if failure and not client.answered:
            await to_problem(failure, scope)(scope, receive, client.send)
        return None

    def judge(
        self, answer: "asyncio.Future[None]", hang_up: "asyncio.Future[None]", context: RequestContext
    ) -> SamefaceError | None:
        """The error to answer with, or None if the application has answered or the client has hung up."""
        if not answer.done():
            return None if hang_up.done() else TimedOut(f"A request may take {self.seconds:g} seconds.")
        error = answer.exception()
        if error and not isinstance(error, ClientDisconnect):
            log.error("request %s failed", context.request_id, exc_info=error)
            return internal_error()
        return None


class Client:
    """The client's end of the connection: passes messages on, and notices when the client hangs up."""

    def __init__(self, receive: Receive, send: Send, *, has_body: bool) -> None:
        self.answered = False
        self._receive = receive
        self._send = send
        self._has_body = has_body
        self._answer_is_out = False
        self._arrived = asyncio.Event()
        self._gone = asyncio.Event()

    async def receive(self) -> Message:
        """The next ASGI message of the request; after the last, wait for the disconnect and return it."""
        if self._arrived.is_set():
            await self._gone.wait()
            return {"type": "http.disconnect"}
        message = await self._receive()
        if message["type"] == "http.disconnect" or not message.get("more_body", False):
            self._arrived.set()
        return message

    async def send(self, message: Message) -> None:
        """Pass on a message of the response; a response before the request's end closes the connection."""
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
        self.answered = True  # not before: the first message waits while an earlier answer is not read

    async def wait_for_hang_up(self) -> None:
        """Return if the client hangs up before its response ends.

        After the last message of the request, no other task receives from the connection.
        """
        await self._arrived.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if self._answer_is_out:  # uvicorn reports a disconnect after every response: let the task finish
            await asyncio.Event().wait()
        self._gone.set()

    async def _drain(self) -> None:
        """Discard the rest of the request, up to a limit: most clients read only after sending everything."""
        left = DRAIN_BYTES
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                while left > 0 and not self._arrived.is_set():
                    left -= len((await self.receive()).get("body", b""))
