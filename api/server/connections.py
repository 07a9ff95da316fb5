"""The limits of connections, before any route sees a request: headers, time, number, unread answers."""

import asyncio
import ipaddress
import logging
import resource
from collections import Counter, deque
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from sameface.api.metrics import Metrics
from sameface.api.settings import Settings

log = logging.getLogger("sameface.connections")

MAX_HEADER_BYTES = 65_536  # of the request line and all headers
MAX_HEADERS = 100
HEADER_SECONDS = 30.0  # from the first byte of a request, or from connecting, to the end of its headers
RESERVED_FILES = 64  # descriptors that are kept for the database, snapshots and temporary files
HEADERS_TOO_LARGE = "431 Request Header Fields Too Large"
BAD_REQUEST = "400 Bad Request"


class LimitedConnection(HttpToolsProtocol):
    """An HTTP connection of uvicorn with limits; `limit_connections` makes the subclass for one server."""

    settings: Settings
    metrics: Metrics
    most: int  # connections at one time
    by_address: Counter[str]  # open connections of each address that has a limit of its own

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, or abort it if there are too many."""
        super().connection_made(transport)
        self._address = None if self.settings.trusts(self.client) else limited_address(self.client)
        self._header_bytes = 0
        self._waits_for_headers: object | None = object()  # another one for every request; None within a body
        self._refusal = BAD_REQUEST
        self._unanswered: deque[RequestResponseCycle] = deque()  # in the order of the requests
        self._unread: asyncio.TimerHandle | None = None
        self._late = self.loop.call_later(HEADER_SECONDS, self._cut, "slow_headers")
        if self._address:
            self.by_address[self._address] += 1
        self.metrics.connections(len(self.connections))
        if len(self.connections) > self.most:
            self._cut("too_many")
        elif self._address and self.by_address[self._address] > self.settings.max_connections_per_address:
            self._cut("too_many_of_one_address")

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        super().connection_lost(exc)
        self._give_up_answers()
        self._late.cancel()
        if self._unread:
            self._unread.cancel()
        if self._address:
            self.by_address[self._address] -= 1
            if not self.by_address[self._address]:
                del self.by_address[self._address]
        self.metrics.connections(len(self.connections))

    def data_received(self, data: bytes) -> None:
        """Parse the next bytes; headers that grow past the limit are answered with 431, once."""
        if self.transport.is_closing():
            return
        if self._unread:
            self._watch_unread()  # a client that sends is alive, although it does not read yet
        waiting = self._waits_for_headers
        super().data_received(data)
        if waiting and waiting is self._waits_for_headers:  # all of the data was headers
            self._header_bytes += len(data)
            if self._header_bytes > MAX_HEADER_BYTES and not self.transport.is_closing():
                self._refuse_headers()

    def on_message_begin(self) -> None:
        """A request begins: its headers have their own limit and time."""
        super().on_message_begin()
        self._header_bytes = 0
        self._late.cancel()
        self._late = self.loop.call_later(HEADER_SECONDS, self._cut, "slow_headers")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header, if there are not too many."""
        super().on_header(name, value)
        if len(self.headers) > MAX_HEADERS:
            self._refusal = HEADERS_TOO_LARGE
            raise ValueError("too many headers")  # the parser turns it into an error of its own

    def on_headers_complete(self) -> None:
        """The headers are complete: from now on the time limit of the request counts."""
        self._waits_for_headers = None
        self._late.cancel()
        super().on_headers_complete()
        while self._unanswered and self._unanswered[0].response_complete:
            self._unanswered.popleft()
        self._unanswered.append(self.cycle)

    def on_message_complete(self) -> None:
        """The request is complete: what comes next are headers."""
        self._waits_for_headers = object()
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer a request that cannot be parsed with 400, or with 431 for its headers, and hang up."""
        if self._refusal == HEADERS_TOO_LARGE:
            self._refuse_headers()
        else:
            super().send_400_response(msg)

    def pause_writing(self) -> None:
        """Start the time limit of a client that does not read its answer."""
        super().pause_writing()
        self._watch_unread()

    def resume_writing(self) -> None:
        """The client reads again."""
        super().resume_writing()
        if self._unread:
            self._unread.cancel()
            self._unread = None

    def _unsupported_upgrade_warning(self) -> None:
        """Answer an upgrade, which nothing here supports: the parser reads no body after it."""
        if self.cycle and self.cycle.more_body:
            super().send_400_response("Upgrades are not supported.")

    def _watch_unread(self) -> None:
        if self._unread:
            self._unread.cancel()
        self._unread = self.loop.call_later(self.settings.request_seconds, self._cut, "unread_answer")

    def _refuse_headers(self) -> None:
        """Answer with 431 and hang up without reading on."""
        self.metrics.cut_connection("headers_too_large")
        head = f"HTTP/1.1 {HEADERS_TOO_LARGE}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
        self.transport.write(head.encode())
        self.transport.close()

    def _cut(self, reason: str) -> None:
        """Abort the connection, and say why in the log and in the metrics."""
        if not self.transport.is_closing():
            log.warning("a connection is cut: %s", reason)
            self.metrics.cut_connection(reason)
            self._give_up_answers()
            self.transport.abort()

    def _give_up_answers(self) -> None:
        """Let all requests know that nobody waits for their answers; uvicorn tells the newest one alone."""
        for cycle in self._unanswered:
            cycle.disconnected = True
            cycle.message_event.set()


def limited_address(client: tuple[str, int] | None) -> str | None:
    """The address of a client that has a limit of its own; None for loopback, where proxies are."""
    if client is None:
        return None
    try:
        return None if ipaddress.ip_address(client[0]).is_loopback else client[0]
    except ValueError:
        return client[0]


def limit_connections(settings: Settings, metrics: Metrics) -> type[LimitedConnection]:
    """The connections of one server; never more than the process has file descriptors for."""
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    room = descriptors - RESERVED_FILES if descriptors != resource.RLIM_INFINITY else settings.max_connections
    limits: dict[str, Any] = {
        "settings": settings,
        "metrics": metrics,
        "most": max(1, min(settings.max_connections, room)),
        "by_address": Counter(),
    }
    return type("Connection", (LimitedConnection,), limits)
