"""Begins and ends every request: gives it its context, counts it, and writes its line of the access log."""

import logging
import re
import time
import uuid

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sameface.api.metrics import Metrics
from sameface.api.middleware.traceparent import read_traceparent
from sameface.api.request_context import (
    Deadline,
    RequestContext,
    begin_request,
    context_of,
)
from sameface.api.traces import RequestSpan, Traces

log = logging.getLogger("sameface.access")

CLIENT_GONE = 499  # nginx's status for a client that left before its response
REQUEST_ID = re.compile(r"[A-Za-z0-9._~-]{1,128}")


class RequestMeter:
    """The outermost middleware; each HTTP request may take `seconds`, is counted in `metrics` and, if there
    are `traces`, gets a span.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, seconds: float, traces: Traces | None = None) -> None:
        self.app = app
        self.metrics = metrics
        self.seconds = seconds
        self.traces = traces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass an HTTP request on with its context; count it when its response ends or its client leaves."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        headers = Headers(scope=scope)
        context = self.begin(scope, headers)
        span = self.begin_span(scope, headers, context)
        started, status = time.perf_counter(), CLIENT_GONE

        async def send_and_look(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                add_ids(MutableHeaders(scope=message), context)
            elif not message.get("more_body", False):
                self.end(scope, span, started, status)  # first: whoever has the response finds it counted
            await send(message)

        try:
            return await self.app(scope, receive, send_and_look)
        finally:
            if status == CLIENT_GONE:
                self.end(scope, span, started, status)

    def begin(self, scope: Scope, headers: Headers) -> RequestContext:
        """Give a request its context; its id is a valid `X-Request-ID` of the client, or a new one."""
        sent = headers.get("x-request-id", "")
        request_id = sent if REQUEST_ID.fullmatch(sent) else uuid.uuid4().hex
        has_body = "transfer-encoding" in headers or headers.get("content-length", "0") != "0"
        context = RequestContext(request_id, Deadline(self.seconds), has_body)
        context.trace = read_traceparent(headers)
        begin_request(scope, context)
        return context

    def begin_span(self, scope: Scope, headers: Headers, context: RequestContext) -> RequestSpan | None:
        """Start the request's span, a child of the caller's, as `context.trace`; None without traces."""
        if self.traces is None:
            return None
        span = self.traces.begin(scope["method"], context.trace, headers.get("tracestate", ""))
        context.trace = span.trace
        return span

    def end(self, scope: Scope, span: RequestSpan | None, started: float, status: int) -> None:
        """Count and log a request, and end its span."""
        context, seconds = context_of(scope), time.perf_counter() - started
        self.count(scope, context, seconds, status)
        if span:
            span.end(route_of(scope), status, context)

    def count(self, scope: Scope, context: RequestContext, seconds: float, status: int) -> None:
        """Count and log a request by its route: never by its path, which has ids in it."""
        method, route, caller, ms = scope["method"], route_of(scope), context.caller_id, 1000 * seconds
        self.metrics.request(route, status, caller, seconds, context.problem)
        said = method, route, status, ms, caller, context.request_id
        fields = {"method": method, "route": route, "status": status, "ms": round(ms, 1), "caller": caller}
        log.info("%s %s %d %.0f ms %s %s", *said, extra={"fields": fields})


def add_ids(headers: MutableHeaders, context: RequestContext) -> None:
    """Add the ids of request and trace to the headers of the response."""
    headers["X-Request-ID"] = context.request_id
    if context.trace:
        headers["traceparent"] = str(context.trace)


def route_of(scope: Scope) -> str:
    """The template of the request's route, or its label where several share a path; `none` if it met none."""
    route = scope.get("route")
    return str(getattr(route, "label", getattr(route, "path", "none")))
