"""Begins and ends every request: gives it its context, counts it, and writes its line of the access log."""

import logging
import re
import time
import uuid

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sameface.api.metrics import Metrics
from sameface.api.middleware.request_context import KEY, Deadline, RequestContext

log = logging.getLogger("sameface.access")

CLIENT_GONE = 499  # nginx's status for a client that left before its response
REQUEST_ID = re.compile(r"[A-Za-z0-9._~-]{1,128}")


class RequestMeter:
    """The outermost middleware; each HTTP request may take `seconds` and is counted in `metrics`."""

    def __init__(self, app: ASGIApp, metrics: Metrics, seconds: float) -> None:
        self.app = app
        self.metrics = metrics
        self.seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass an HTTP request on with its context; count it when its response ends or its client leaves."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        context = self.begin(scope)
        started, status = time.perf_counter(), CLIENT_GONE

        async def send_and_look(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-ID"] = context.request_id
            elif not message.get("more_body", False):
                self.count(
                    scope, context, started, status
                )  # first: whoever has the response finds it counted
            await send(message)

        try:
            return await self.app(scope, receive, send_and_look)
        finally:
            if status == CLIENT_GONE:
                self.count(scope, context, started, status)

    def begin(self, scope: Scope) -> RequestContext:
        """Give a request its context; its id is a valid `X-Request-ID` of the client, or a new one."""
        headers = Headers(scope=scope)
        sent = headers.get("x-request-id", "")
        request_id = sent if REQUEST_ID.fullmatch(sent) else uuid.uuid4().hex
        has_body = "transfer-encoding" in headers or headers.get("content-length", "0") != "0"
        context = RequestContext(request_id, Deadline(self.seconds), has_body)
        scope.setdefault("state", {})[KEY] = context
        return context

    def count(self, scope: Scope, context: RequestContext, started: float, status: int) -> None:
        """Count and log a request by its route: never by its path, which has ids in it."""
        route, seconds = getattr(scope.get("route"), "path", "none"), time.perf_counter() - started
        self.metrics.request(route, status, seconds, context.problem)
        log.info("%s %s %d %.0f ms %s", scope["method"], route, status, 1000 * seconds, context.request_id)
