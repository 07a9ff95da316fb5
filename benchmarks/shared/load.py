"""A load client that takes little CPU time: keep-alive sockets, requests made beforehand."""

import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.shared.server import Server

if TYPE_CHECKING:  # rivals make loads in environments without sameface
    from sameface.model.faces import Floats

Call = Callable[[int], tuple[int, bytes]]  # the number of a request -> the answer's status and body


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one request."""

    number: int  # of the request
    status: int
    seconds: float
    body: bytes

    def read(self) -> Any:
        """The body, parsed as JSON."""
        return json.loads(self.body)


@dataclass(slots=True)
class Load:
    """The answers of a run, its duration and the client's CPU time."""

    seconds: float = 0.0
    client_cpu_seconds: float = 0.0
    answers: list[Answer] = field(default_factory=list)

    @property
    def statuses(self) -> Counter[int]:
        """The number of answers by status."""
        return Counter(answer.status for answer in self.answers)

    @property
    def latencies(self) -> list[float]:
        """Seconds of each request that was answered with success."""
        return [answer.seconds for answer in self.answers if answer.status in (200, 201)]

    @property
    def per_second(self) -> float:
        """Requests per second that were answered with success."""
        return len(self.latencies) / self.seconds

    def percentile(self, share: float) -> float:
        """The latency at the percentile `share`, in milliseconds."""
        return float(np.percentile(self.latencies, share)) * 1000


def run_load(
    server: Server,
    requests: Sequence[bytes],
    clients: int,
    *,
    seconds: float = float("inf"),
    count: int = 1 << 62,
    patient: bool = False,
) -> Load:
    """Run `clients` against the server, each sending its next request once the last is answered.

    After a 429, `patient` clients wait for the seconds that it names.
    """
    with ExitStack() as opened:
        connections = [opened.enter_context(Connection(server)) for _ in range(clients)]

        def ask(connection: Connection, number: int) -> tuple[int, bytes]:
            status, body = connection.ask(requests[number % len(requests)])
            if status == 429 and patient:
                time.sleep(json.loads(body)["retry_after_seconds"])
            return status, body

        return run_callers([partial(ask, each) for each in connections], seconds=seconds, count=count)


def run_callers(callers: Sequence[Call], *, seconds: float = float("inf"), count: int = 1 << 62) -> Load:
    """Run every caller on its own thread, one call after the other, for `seconds` or `count` calls."""
    load, lock, started = Load(), threading.Lock(), time.perf_counter()
    numbers = iter(range(count))

    def run(call: Call) -> None:
        while time.perf_counter() - started < seconds:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            start = time.perf_counter()
            status, body = call(number)
            load.answers.append(Answer(number, status, time.perf_counter() - start, body))

    cpu = time.process_time()
    threads = [threading.Thread(target=run, args=(call,)) for call in callers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    load.seconds = time.perf_counter() - started
    load.client_cpu_seconds = time.process_time() - cpu
    return load


class Connection:
    """A keep-alive connection, reopened if the server closes it after a response."""

    def __init__(self, server: Server) -> None:
        self._address = server.host, server.port
        self._socket: socket.socket | None = None

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, request: bytes) -> tuple[int, bytes]:
        """Send a request and read the response to its end."""
        self._socket = self._socket or socket.create_connection(self._address)
        self._socket.sendall(request)
        received = b""
        while b"\r\n\r\n" not in received:
            received += self._receive()
        head, _, body = received.partition(b"\r\n\r\n")
        head = head.lower()
        length = int(head.partition(b"content-length:")[2].split()[0])
        while len(body) < length:
            body += self._receive()
        if b"connection: close" in head:
            self.close()
        return int(head.split()[1]), body

    def close(self) -> None:
        """Close the socket."""
        if self._socket:
            self._socket.close()
            self._socket = None

    def _receive(self) -> bytes:
        """The next bytes of the response; raises ConnectionError if the server hung up."""
        assert self._socket
        received = self._socket.recv(65536)
        if not received:
            raise ConnectionError("the server hung up")
        return received


def verify_request(probe: Path, reference: Path) -> bytes:
    """POST /v1/verify with two photos."""
    return form_request("/v1/verify", {"probe": probe.read_bytes(), "reference": reference.read_bytes()})


def identify_request(probe: "Floats") -> bytes:
    """POST .../identify of the collection `people`, with an embedding."""
    body = json.dumps({"embedding": probe.tolist()}).encode()
    return post("/v1/collections/people/identify", "application/json", body)


def form_request(path: str, photos: Mapping[str, bytes], fields: Mapping[str, str] = {}) -> bytes:
    """POST a multipart form with photos as files, and text fields."""
    part = b'--edge\r\nContent-Disposition: form-data; name="%s"%s\r\n\r\n%s\r\n'
    parts = [part % (name.encode(), b"", value.encode()) for name, value in fields.items()]
    parts += [part % (name.encode(), b'; filename="a.jpg"', photo) for name, photo in photos.items()]
    return post(path, "multipart/form-data; boundary=edge", b"".join(parts) + b"--edge--\r\n")


def post(path: str, content_type: str, body: bytes) -> bytes:
    """The bytes of a POST request."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\n"
        f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
