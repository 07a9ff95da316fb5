"""One request as it is written on the wire, and what comes back."""

import http.client
import socket
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

import httpx


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server said: no status if it hung up, or said nothing in time."""

    status: int | None
    headers: dict[str, str]
    body: bytes
    cut: bool  # the server hung up


def connect(address: httpx.URL, seconds: float = 10.0, receive_bytes: int | None = None) -> socket.socket:
    """A connection to the server, with a small buffer for answers if one is asked for."""
    opened = socket.socket()
    opened.settimeout(seconds)
    if receive_bytes:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    try:
        opened.connect((address.host, address.port))
    except BaseException:
        opened.close()
        raise
    return opened


def write_request(
    method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes | None = None
) -> bytes:
    """A request on the wire; a body has its length, unless the headers say otherwise."""
    sent = {"Host": "localhost", **(headers or {})}
    if body is not None and "Transfer-Encoding" not in sent:
        sent["Content-Length"] = str(len(body))
    lines = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + (body or b"")


def exchange(address: httpx.URL, *parts: bytes, seconds: float = 30.0, method: str = "GET") -> Answer:
    """Send bytes on a connection of their own, and read one answer, waiting for so long."""
    with connect(address, seconds) as opened:
        with suppress(OSError):  # a server may answer and hang up before it has read everything
            for part in parts:
                opened.sendall(part)
        return read_answer(opened, method)


def read_answer(opened: socket.socket, method: str = "GET") -> Answer:
    """The next answer on a connection."""
    response = http.client.HTTPResponse(opened, method=method)
    try:
        response.begin()
        headers = {name.lower(): value for name, value in response.getheaders()}
        try:
            body = response.read()
        except http.client.IncompleteRead as error:
            body = error.partial
        return Answer(response.status, headers, body, cut=False)
    except TimeoutError:
        return Answer(None, {}, b"", cut=False)
    except (OSError, http.client.HTTPException):
        return Answer(None, {}, b"", cut=True)
    finally:
        response.close()


def is_cut(opened: socket.socket, seconds: float = 0.0) -> bool:
    """Whether the server has hung up, or does so within this time."""
    opened.settimeout(max(seconds, 0.001))
    try:
        return opened.recv(65536) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def count_cut(connections: Iterable[socket.socket]) -> int:
    """How many of the connections the server has cut."""
    return sum(map(is_cut, connections))
