"""Connections that send too much, too slowly, nothing, or do not read."""

import resource
import socket
import threading
import time
from contextlib import ExitStack, suppress

import httpx

from tests.attack.exchange import connect, count_cut, exchange, is_cut, write_request
from tests.attack.findings.outcome import Outcome
from tests.attack.ground import Ground, Server

GET = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n"
SMALL_HEADERS = b"X: y\r\n" * 10_000
HEADER_CHUNKS = 5_000  # of sixty kilobytes: 300 MB in all
DESCRIPTORS = 256


def flood(server: Server, first: bytes, chunk: bytes, chunks: int) -> int:
    """Send a chunk again and again until the server hangs up; returns the bytes that were sent."""
    with connect(server.address) as opened:
        sent = 0
        with suppress(OSError):
            opened.sendall(first)
            for _ in range(chunks):
                opened.sendall(chunk)
                sent += len(chunk)
        return sent


def send_headers(ground: Ground) -> Outcome:
    """Hundreds of megabytes of small headers, and a header that never ends, on eight connections."""
    with ground.serve() as server:
        before = server.megabytes
        few = exchange(server.address, GET + b"X: y\r\n" * 200 + b"\r\n")
        sent: list[int] = []
        kinds = [(GET, SMALL_HEADERS), (GET + b"X: ", b"y" * 60_000)] * 4
        threads = [
            threading.Thread(target=lambda kind=kind: sent.append(flood(server, *kind, HEADER_CHUNKS)))
            for kind in kinds
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    grown = ground.measures.peak_megabytes - before
    return Outcome(
        few.status == 431 and max(sent) < 20_000_000 and grown < 100 and ground.measures.slowest_ms < 2_000,
        f"200 headers are {few.status}; of eight endless ones none got rid of more than"
        f" {max(sent) / 1e6:.1f} MB before it was cut, {max(0, grown):.0f} MB more memory",
    )


def limit_descriptors() -> None:
    """Give a process few file descriptors."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))


def hold_connections(ground: Ground) -> Outcome:
    """Idle and half-sent connections, more than the server has file descriptors for."""
    with ground.serve(prepare=limit_descriptors) as server, ExitStack() as opened:
        held = []
        for number in range(232):
            held.append(opened.enter_context(connect(server.address)))
            with suppress(OSError):
                held[-1].sendall((b"", b"GET / HT", GET)[number % 3])
        time.sleep(1)
        at_once = count_cut(held)
        started = time.monotonic()
        while (newcomer := ask_live(server)) != 200 and time.monotonic() - started < 60:
            time.sleep(0.25)
        waited = time.monotonic() - started
        time.sleep(3)
        cut = count_cut(held)
        metrics = httpx.get(f"{server.address}/metrics", timeout=30).text
    said = "slow_headers" in server.log and 'reason="slow_headers"' in metrics
    return Outcome(
        newcomer == 200 and waited < 35 and cut == len(held) and said,
        f"of 232, {at_once} are cut at once and the others after 30 s, in the log and the metrics; a newcomer"
        f" is let in after {waited:.0f} s",
    )


def ask_live(server: Server) -> int | None:
    """The status of a newcomer, None if it is cut."""
    try:
        return exchange(server.address, GET + b"Connection: close\r\n\r\n", seconds=5).status
    except OSError:
        return None


def leave_answers_unread(ground: Ground) -> Outcome:
    """Sixty clients that ask for much and read nothing, twenty of them with a batch."""
    asked = GET.replace(b"/health/live", b"/openapi.json") + b"\r\n"
    with ground.serve(request_seconds=5) as server, ExitStack() as opened:
        before = server.megabytes
        batch = start_batch(server) + send_chunk(b'{"id": "1"}\n' * 5_000) * 4 + b"0\r\n\r\n"
        held = []
        for number in range(60):
            held.append(opened.enter_context(connect(server.address, 0.5, receive_bytes=4096)))
            with suppress(OSError):
                held[-1].sendall(batch if number % 3 == 0 else asked * 50)
        started = time.monotonic()
        while (open_now := count_open(server)) > 5 and time.monotonic() - started < 40:
            time.sleep(0.5)
        waited = time.monotonic() - started
    grown = ground.measures.peak_megabytes - before
    return Outcome(
        open_now <= 5 and waited < 20 and grown < 200,
        f"all are cut within {waited:.0f} s at a limit of 5 s, {max(0, grown):.0f} MB more memory",
    )


def count_open(server: Server) -> float:
    """The connections that the server has open by its metrics, the one that asks included."""
    metrics = httpx.get(f"{server.address}/metrics", timeout=30).text
    return float(metrics.partition("\nsameface_connections ")[2].split()[0])


def start_batch(server: Server) -> bytes:
    """The headers of a batch of probes in a new collection."""
    with server.client() as client:
        client.put("/v1/collections/attacked")
    chunked = {"Content-Type": "application/x-ndjson", "Transfer-Encoding": "chunked"}
    headers = server.authorization("read") | chunked
    return write_request("POST", "/v1/collections/attacked/identify/batch", headers)


def send_chunk(content: bytes) -> bytes:
    """A piece of a chunked body."""
    return b"%x\r\n%s\r\n" % (len(content), content)


def trickle_batches(ground: Ground) -> Outcome:
    """Sixty-two batches that send a byte a second, while others send ordinary photos."""
    with ground.serve(request_seconds=5) as server, ExitStack() as opened, server.client() as client:
        head, statuses = start_batch(server), []
        held = [opened.enter_context(connect(server.address)) for _ in range(62)]
        for stream in held:
            stream.sendall(head + send_chunk(b'{"id": "'))
        started = time.monotonic()
        while held and time.monotonic() - started < 40:
            statuses.append(client.post("/v1/detect", files={"image": ground.photo}).status_code)
            held = [stream for stream in held if trickle(stream)]
            time.sleep(1)
        waited = time.monotonic() - started
    return Outcome(
        set(statuses) == {200} and waited < 20,
        f"{len(statuses)} ordinary photos meanwhile are all {'200' if set(statuses) == {200} else statuses};"
        f" without progress all batches are ended within {waited:.0f} s at a limit of 5 s",
    )


def trickle(stream: socket.socket) -> bool:
    """Send one more byte; returns whether the server still listens."""
    if is_cut(stream):
        return False
    try:
        stream.sendall(send_chunk(b"x"))
    except OSError:
        return False
    return True


def ask_for_upgrade(ground: Ground) -> Outcome:
    """A POST that asks to become a websocket."""
    upgrade = {"Connection": "upgrade", "Upgrade": "websocket", "Content-Type": "application/json"}
    with ground.serve() as server:
        asked = write_request("POST", "/v1/detect", server.authorization() | upgrade, b"hello")
        started = time.monotonic()
        answer = exchange(server.address, asked, seconds=10)
        waited = time.monotonic() - started
    return Outcome(answer.status in (400, 422), f"{answer.status} in {waited:.1f} s")
