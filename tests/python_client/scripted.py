"""A server that answers as it is told, and remembers what it was asked: for what a real one does rarely."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

BREAK = "break"  # the connection, without an answer


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer; one with a `code` is a problem."""

    status: int = 200
    body: Any = None
    code: str | None = None
    retry_after: str | None = None

    def encode(self) -> tuple[str, bytes]:
        """The content type and the content."""
        if self.code:
            problem = {"code": self.code, "detail": "As told.", "status": self.status, "request_id": "r1"}
            return "application/problem+json", json.dumps(problem).encode()
        return "application/json", json.dumps(self.body).encode()


@dataclass(slots=True)
class ScriptedServer:
    """Where the server is, what it will answer, and the requests that it got."""

    url: str
    replies: list[Reply | str]
    asked: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)

    def keys(self) -> list[str | None]:
        """The idempotency key of each request."""
        return [headers.get("idempotency-key") for _, _, headers in self.asked]


@contextmanager
def answer_with(*replies: Reply | str) -> Iterator[ScriptedServer]:
    """A server on a free port that gives these replies, one after the other."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            script.asked.append((self.command, self.path, headers))
            reply = script.replies.pop(0)
            if not isinstance(reply, Reply):
                self.close_connection = True
                return
            kind, content = reply.encode()
            self.send_response(reply.status)
            if reply.retry_after:
                self.send_header("Retry-After", reply.retry_after)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    script = ScriptedServer(f"http://127.0.0.1:{server.server_port}", list(replies))
    thread.start()
    try:
        yield script
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
