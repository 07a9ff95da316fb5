"""A receiver of OpenTelemetry traces: a small HTTP server that reads OTLP as a collector does."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue


@dataclass(frozen=True, slots=True)
class Span:
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    kind: int
    failed: bool
    start: int
    end: int
    attributes: dict[str, Any]
    resource: dict[str, Any]


@dataclass
class Receiver:
    address: str
    spans: list[Span] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]

    def below(self, parent: Span) -> list[Span]:
        return [span for span in self.spans if span.parent_id == parent.span_id]


def read_attributes(pairs: list[KeyValue]) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}


def read_spans(content: bytes) -> Iterator[Span]:
    for group in ExportTraceServiceRequest.FromString(content).resource_spans:
        for scope in group.scope_spans:
            for span in scope.spans:
                yield Span(
                    name=span.name,
                    trace_id=span.trace_id.hex(),
                    span_id=span.span_id.hex(),
                    parent_id=span.parent_span_id.hex(),
                    kind=span.kind,
                    failed=span.status.code == span.status.STATUS_CODE_ERROR,
                    start=span.start_time_unix_nano,
                    end=span.end_time_unix_nano,
                    attributes=read_attributes(span.attributes),
                    resource=read_attributes(group.resource.attributes),
                )


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                content = gzip.decompress(content)
            assert self.path == "/v1/traces"
            receiver.headers.append({name.lower(): value for name, value in self.headers.items()})
            receiver.spans.extend(read_spans(content))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        receiver = Receiver(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()
