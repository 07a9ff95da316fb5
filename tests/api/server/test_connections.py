"""Connections that send too much, too slowly or nothing, on raw sockets."""

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest

from sameface.api.server import connections
from tests.conftest import wait_for
from tests.pictures import photo_of

GET = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n"


def connect(client: httpx.Client) -> socket.socket:
    return socket.create_connection((client.base_url.host, client.base_url.port), timeout=10)


def answer_to(client: httpx.Client, *parts: bytes) -> bytes:
    """What the server says until it hangs up, or for a moment after its answer."""
    with connect(client) as opened:
        received = b""
        try:
            for part in parts:
                opened.sendall(part)
            opened.settimeout(3)
            while chunk := opened.recv(65536):
                received += chunk
        except (TimeoutError, ConnectionError):
            pass
    return received


def is_cut(opened: socket.socket) -> bool:
    try:
        return opened.recv(1) == b""
    except ConnectionError:
        return True


def test_too_many_headers_are_431(client: httpx.Client) -> None:
    headers = b"".join(b"X-%d: y\r\n" % number for number in range(200))
    assert answer_to(client, GET + headers + b"\r\n").startswith(b"HTTP/1.1 431")
    few = b"".join(b"X-%d: y\r\n" % number for number in range(90))
    assert answer_to(client, GET + few + b"Connection: close\r\n\r\n").startswith(b"HTTP/1.1 200")


def test_an_endless_header_is_431_and_not_read_to_its_end(client: httpx.Client) -> None:
    before = time.monotonic()
    answer = answer_to(client, GET + b"X: ", *[b"y" * 50_000] * 200)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 431")  # the rest may have reset the connection
    assert time.monotonic() - before < 5
    assert answer_to(client, GET + b"X: " + b"y" * 70_000).startswith(b"HTTP/1.1 431")


def test_headers_after_a_large_body_have_their_own_limit(client: httpx.Client) -> None:
    with httpx.Client(base_url=client.base_url, timeout=20) as kept:
        for _ in range(3):
            large = {"image": photo_of(1) + bytes(300_000)}
            assert kept.post("/v1/detect", files=large).status_code == 200


@pytest.fixture
def hurried(serve, monkeypatch: pytest.MonkeyPatch) -> Iterator[httpx.Client]:
    """A client of a server that gives headers half a second."""
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.5)
    with serve(request_seconds=2, max_connections=12) as client:
        yield client


def test_silent_and_half_sent_connections_are_cut_and_said(hurried: httpx.Client, caplog) -> None:
    for sent in (b"", b"GET / HT", GET):
        with connect(hurried) as opened:
            opened.sendall(sent)
            assert is_cut(opened)
    assert "slow_headers" in caplog.text
    assert 'sameface_cut_connections_total{reason="slow_headers"} 3.0' in hurried.get("/metrics").text


def test_headers_that_trickle_in_are_cut_too(hurried: httpx.Client) -> None:
    with connect(hurried) as opened:
        opened.sendall(b"GET / HTTP/1.1\r\nX: ")
        for _ in range(40):
            time.sleep(0.05)
            try:
                opened.sendall(b"y")
            except ConnectionError:
                break
        else:
            pytest.fail("two seconds of a header that never ends")


def test_beyond_the_limit_connections_are_cut_and_the_others_served(hurried: httpx.Client) -> None:
    assert hurried.get("/health/live").status_code == 200
    with ExitStack() as opened:
        many = [opened.enter_context(connect(hurried)) for _ in range(30)]
        cut = [each for each in many[20:] if is_cut(each)]
        assert len(cut) == 10
    wait_for(lambda: hurried.get("/health/live").status_code == 200)
    assert 'reason="too_many"' in hurried.get("/metrics").text


def test_an_answer_that_nobody_reads_is_given_up(hurried: httpx.Client) -> None:
    asked = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with socket.socket() as opened:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        opened.connect((hurried.base_url.host, hurried.base_url.port))
        opened.sendall(asked * 50)
        wait_for(lambda: 'reason="unread_answer"' in hurried.get("/metrics").text, 15)


def test_requests_in_a_row_that_are_cut_leave_no_error_in_the_log(hurried: httpx.Client, caplog) -> None:
    asked = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with ExitStack() as opened:
        for _ in range(8):
            unread = opened.enter_context(socket.socket())
            unread.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            unread.connect((hurried.base_url.host, hurried.base_url.port))
            unread.sendall(asked * 50)
        wait_for(lambda: 'reason="unread_answer"} 8.0' in hurried.get("/metrics").text, 15)
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


def test_a_request_whose_time_ends_before_its_answer_can_begin_is_no_error(
    hurried: httpx.Client, caplog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        connections.LimitedConnection, "_watch_unread", lambda _: None
    )  # it would be cut first
    with socket.socket() as unread:
        unread.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        unread.connect((hurried.base_url.host, hurried.base_url.port))
        unread.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50)
        time.sleep(4)  # a request has two seconds
    wait_for(lambda: "sameface_connections 1.0" in hurried.get("/metrics").text)
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.mark.parametrize("method", ["POST", "GET"])
def test_an_upgrade_is_answered(client: httpx.Client, method: str) -> None:
    path = "/v1/detect" if method == "POST" else "/health/live"
    request = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
    body = (
        b"Content-Type: application/json\r\nContent-Length: 5\r\n\r\nhello" if method == "POST" else b"\r\n"
    )
    assert answer_to(client, request.encode() + body).startswith(b"HTTP/1.1 ")


def test_loopback_is_limited_by_the_total_alone() -> None:
    assert connections.limited_address(("127.0.0.1", 1)) is None
    assert connections.limited_address(("::1", 1)) is None
    assert connections.limited_address(("192.0.2.7", 1)) == "192.0.2.7"
    assert connections.limited_address(None) is None


def test_a_trusted_proxy_is_limited_by_the_total_alone(serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        connections, "limited_address", lambda client: client[0]
    )  # as if loopback were remote
    for trusted, cut in ((), 3), (("127.0.0.0/8",), 0):
        with serve(max_connections_per_address=3, trusted_proxies=trusted) as client, ExitStack() as opened:
            many = [opened.enter_context(connect(client)) for _ in range(5)]
            for each in many:
                each.settimeout(1)
            assert sum(is_cut_now(each) for each in many) == cut


def is_cut_now(opened: socket.socket) -> bool:
    try:
        return is_cut(opened)
    except TimeoutError:
        return False
