"""Counts and logs every request with its route, status and duration: never its path, which has ids in it."""

import logging
import time
from functools import partial

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sameface.api.metrics import Metrics
from sameface.api.middleware.request_context import context_of

log = logging.getLogger("sameface.access")

CLIENT_GONE = 499  # nginx's status for a client that left before its response


class RequestMeter:
    """ASGI middleware that counts every request in `metrics`, and writes a line of the access log."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count an HTTP request when its response ends or its client has left."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        count = partial(self.count, scope, time.perf_counter())
        status = CLIENT_GONE

        async def send_and_look(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            elif not message.get("more_body", False):
                count(status)  # before sending: a client that has its response finds it counted
            await send(message)

        try:
            return await self.app(scope, receive, send_and_look)
        finally:
            if status == CLIENT_GONE:
                count(CLIENT_GONE)

    def count(self, scope: Scope, started: float, status: int) -> None:
        """Count a request that began at `started`, by its route."""
        route = getattr(scope.get("route"), "path", "none")  # the template: a path has ids in it
        context, seconds = context_of(scope), time.perf_counter() - started
        self.metrics.request(route, status, seconds, context.problem)
        log.info("%s %s %d %.0f ms %s", scope["method"], route, status, 1000 * seconds, context.request_id)
