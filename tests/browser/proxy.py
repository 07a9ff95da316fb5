"""A reverse proxy as users have it: it ends TLS, and serves under a prefix that it strips."""

import http.client
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import trustme

DROPPED = ("connection", "transfer-encoding", "content-length")


@contextmanager
def proxy_to(server: httpx.URL, prefix: str) -> Iterator[str]:
    """Serve `server` over TLS under `prefix`; yields the address that users type."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            upstream = http.client.HTTPConnection(server.host, server.port, timeout=30)
            upstream.request(self.command, self.path.removeprefix(prefix), body, dict(self.headers))
            answer = upstream.getresponse()
            content = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in DROPPED:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            upstream.close()

        do_GET = do_POST = do_PUT = do_DELETE = answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("localhost").configure_cert(context)
    listener.socket = context.wrap_socket(listener.socket, server_side=True)
    thread = threading.Thread(target=listener.serve_forever)
    thread.start()
    try:
        yield f"https://localhost:{listener.server_port}{prefix}"
    finally:
        listener.shutdown()
        thread.join()
        listener.server_close()
