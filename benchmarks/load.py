"""A load client that costs little itself: keep-alive sockets, bodies made beforehand."""

import json
import socket
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.server import Server
from model.faces import Floats
from model.pairs import Pair


@dataclass(slots=True)
class Load:
    """What a run of the client saw."""

    seconds: float = 0.0
    client_cpu_seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)

    @property
    def per_second(self) -> float:
        """Answered requests per second."""
        return self.statuses[200] / self.seconds

    def percentile(self, share: float) -> float:
        """Latency in milliseconds that this share of the requests stayed below."""
        return float(np.percentile(self.latencies, share)) * 1000


def verify_requests(pairs: list[Pair]) -> list[bytes]:
    """One complete HTTP request per pair."""
    return [verify_request(pair.probe, pair.reference) for pair in pairs]


def verify_request(probe: Path, reference: Path) -> bytes:
    """POST /v1/verify with two photos."""
    parts = b"".join(
        b'--edge\r\nContent-Disposition: form-data; name="%s"; filename="a.jpg"\r\n\r\n%s\r\n'
        % (name, path.read_bytes())
        for name, path in ((b"probe", probe), (b"reference", reference))
    )
    body = parts + b"--edge--\r\n"
    head = (
        b"POST /v1/verify HTTP/1.1\r\nHost: sameface\r\nContent-Type: multipart/form-data; boundary=edge\r\n"
    )
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


def identify_request(probe: Floats) -> bytes:
    """POST .../identify of the collection `people`, with an embedding."""
    body = json.dumps({"embedding": probe.tolist()}).encode()
    head = b"POST /v1/collections/people/identify HTTP/1.1\r\nHost: sameface\r\n"
    return head + b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def run_load(
    server: Server,
    requests: list[bytes],
    clients: int,
    *,
    seconds: float = float("inf"),
    count: int = 1 << 62,
) -> Load:
    """So many clients, each sending its next request once the last is answered, until time or count is up."""
    load, lock, started = Load(), threading.Lock(), time.perf_counter()
    sent = iter(range(count))

    def run() -> None:
        with socket.create_connection((server.host, server.port)) as connection:
            while time.perf_counter() - started < seconds:
                with lock:
                    number = next(sent, None)
                if number is None:
                    return
                start = time.perf_counter()
                connection.sendall(requests[number % len(requests)])
                status = read_status(connection)
                with lock:
                    load.statuses[status] += 1
                    if status == 200:
                        load.latencies.append(time.perf_counter() - start)

    cpu = time.process_time()
    threads = [threading.Thread(target=run) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    load.seconds = time.perf_counter() - started
    load.client_cpu_seconds = time.process_time() - cpu
    return load


def read_status(connection: socket.socket) -> int:
    """Read one response to its end."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += receive(connection)
    head, _, body = received.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].split()[0])
    while len(body) < length:
        body += receive(connection)
    return int(head.split()[1])


def receive(connection: socket.socket) -> bytes:
    """More of the response."""
    received = connection.recv(65536)
    if not received:
        raise ConnectionError("the server hung up")
    return received
