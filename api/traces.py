"""OpenTelemetry traces: a span per request and, below it, one per stage; alone imports opentelemetry.

Whether and where to is said by the standard OTEL_ variables; without an endpoint nothing is imported.
"""

import logging
import os
import threading
import time
from importlib.metadata import version
from typing import TYPE_CHECKING

from sameface.api.metrics import Metrics
from sameface.api.middleware.traceparent import TraceParent

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Span

    from sameface.api.request_context import RequestContext

log = logging.getLogger("sameface.traces")

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
PROTOCOL = "http/protobuf"
METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
CLOSE_SECONDS = 5.0  # in which the last spans are sent when the server stops


class Traces:
    """Makes spans in this process, and sends them on a thread of its own."""

    def __init__(self, provider: "TracerProvider", exporter: "SpanExporter") -> None:
        self._provider = provider
        self._exporter = exporter
        self._tracer = provider.get_tracer("sameface", version("sameface"))

    def begin(self, method: str, parent: TraceParent | None, state: str) -> "RequestSpan":
        """Begin a request's span, below that of its caller, and make it current for the request's task."""
        from opentelemetry import context, trace

        name = method if method in METHODS else "HTTP"
        span = self._tracer.start_span(name, to_context(parent, state), trace.SpanKind.SERVER)
        span.set_attribute("http.request.method", method if method in METHODS else "_OTHER")
        context.attach(trace.set_span_in_context(span))  # the task ends with the request, and so does this
        return RequestSpan(span, name)

    def stage(self, name: str, seconds: float) -> None:
        """Make the span of a stage that has just ended, below that of its request."""
        from opentelemetry.trace import get_current_span

        if get_current_span().is_recording():  # there is a request, it is sampled, and it goes on
            end = time.time_ns()
            self._tracer.start_span(name, start_time=end - int(seconds * 1e9)).end(end)

    def close(self) -> None:
        """Send the last spans, and end the thread; give up on a collector that takes too long."""
        giving_up = threading.Timer(CLOSE_SECONDS, self._exporter.shutdown)
        giving_up.start()
        self._provider.shutdown()
        giving_up.cancel()


class RequestSpan:
    """The span of one request."""

    def __init__(self, span: "Span", method: str) -> None:
        self._span = span
        self.method = method
        made = span.get_span_context()
        self.trace = TraceParent(f"{made.trace_id:032x}", f"{made.span_id:016x}", int(made.trace_flags))

    def end(self, route: str, status: int, context: "RequestContext") -> None:
        """End the span with what the access log says too: the route, and nothing of the path or the body."""
        from opentelemetry.trace import StatusCode

        span = self._span
        if route != "none":
            span.update_name(f"{self.method} {route}")
        span.set_attributes(
            {
                "http.route": route,
                "http.response.status_code": status,
                "sameface.caller": context.caller_id,
                "sameface.request_id": context.request_id,
            }
        )
        if context.problem:
            span.set_attribute("error.type", context.problem)
        if status >= 500:
            span.set_status(StatusCode.ERROR)
        span.end()


class TracedMetrics(Metrics):
    """Metrics whose stages are spans, too."""

    def __init__(self, traces: Traces) -> None:
        super().__init__()
        self.traces = traces

    def stage(self, name: str, seconds: float) -> None:
        """Observe the duration of a stage, and make its span."""
        super().stage(name, seconds)
        self.traces.stage(name, seconds)


def to_context(parent: TraceParent | None, state: str) -> "Context":
    """The context of OpenTelemetry with the caller's span in it; an empty one without a caller's span."""
    from opentelemetry import context, trace

    if parent is None:
        return context.Context()
    remote = trace.SpanContext(
        int(parent.trace_id, 16),
        int(parent.span_id, 16),
        is_remote=True,
        trace_flags=trace.TraceFlags(parent.flags),
        trace_state=trace.TraceState.from_header([state] if state else []),
    )
    return trace.set_span_in_context(trace.NonRecordingSpan(remote), context.Context())


def traces_wanted() -> bool:
    """Whether the OTEL_ variables ask for traces: there is an endpoint, and nothing turns them off."""
    off = os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true"
    off = off or os.environ.get("OTEL_TRACES_EXPORTER") == "none"
    return any(map(os.environ.get, ENDPOINTS)) and not off


def find_traces_fault() -> str | None:
    """Why traces that are wanted cannot be sent, and what to do; None if they can."""
    protocol = next((found for found in map(os.environ.get, PROTOCOLS) if found), PROTOCOL)
    if protocol != PROTOCOL:
        return f"traces are sent as {PROTOCOL} alone, and OTEL_EXPORTER_OTLP_PROTOCOL is {protocol}"
    try:
        import opentelemetry.exporter.otlp.proto.http.trace_exporter
        import opentelemetry.sdk.trace  # noqa: F401
    except ModuleNotFoundError:
        return "an endpoint is set, and the extra otel is not installed: in a clone, pip install '.[otel]'"
    return None


def open_traces() -> Traces | None:
    """Start to send traces, if they are wanted and can be; after the fork of a worker: it takes a thread."""
    if not traces_wanted():
        return None
    if fault := find_traces_fault():
        log.warning("no traces: %s", fault)
        return None
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    own = Resource(
        {"service.name": "sameface", "service.version": version("sameface"), "process.pid": os.getpid()}
    )
    told = OTELResourceDetector().detect()  # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES
    provider = TracerProvider(resource=own.merge(told), shutdown_on_exit=False)
    exporter = OTLPSpanExporter()
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return Traces(provider, exporter)
