"""Gives every request its context, and every response the id of its request."""

import re
import uuid

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sameface.api.request_context import Deadline, RequestContext, put_context

REQUEST_ID = re.compile(r"[A-Za-z0-9._~-]{1,128}")


class RequestId:
    """The outermost middleware: a valid `X-Request-ID` of the client is kept, else one is made."""

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self.app = app
        self.seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection event."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        sent = Headers(scope=scope).get("x-request-id", "")
        request_id = sent if REQUEST_ID.fullmatch(sent) else uuid.uuid4().hex
        put_context(scope, RequestContext(request_id, Deadline(self.seconds)))

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["X-Request-ID"] = request_id
            await send(message)

        return await self.app(scope, receive, send_with_id)
