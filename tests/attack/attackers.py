"""Many attackers at once in a process of their own, cheap for themselves: their bytes are made beforehand."""

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from tests.attack.crafted_photos import flat_webp, slowest_jpeg
from tests.attack.exchange import write_request
from tests.attack.hostile.images import EDGE, write_form

Attacker = Callable[["Target"], Awaitable[None]]

PAUSE_SECONDS = 0.2  # of an attacker whose connection was cut
SMALL_BUFFER = 4096  # bytes that a client which does not read has received all the same


class Target:
    """A server, and the requests that are sent to it again and again."""

    def __init__(self, host: str, port: int, read_key: str, write_key: str, dimension: int) -> None:
        self.host, self.port = host, port
        self.read_key = {"Authorization": f"Bearer {read_key}"}
        self.write_key = {"Authorization": f"Bearer {write_key}"}
        self.dimension = dimension
        self.done: Counter[str] = Counter()

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A new connection."""
        return await asyncio.open_connection(self.host, self.port, limit=SMALL_BUFFER)

    async def repeat(self, request: bytes) -> None:
        """Send a request, read its answer, and send it again, on one connection while it lasts."""
        reader, writer = await self.connect()
        with closing_soon(writer):
            while True:
                writer.write(request)
                await writer.drain()
                head = await reader.readuntil(b"\r\n\r\n")
                self.done[head.split()[1].decode()] += 1
                length = int(head.lower().partition(b"content-length:")[2].split()[0])
                while length:
                    length -= len(await reader.read(length))


class closing_soon:  # noqa: N801
    """Closes a connection after the block, without waiting."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.writer = writer

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        self.writer.close()


def detect(target: Target, photo: bytes) -> bytes:
    """A request that has a photo decoded."""
    headers = target.read_key | {"Content-Type": f"multipart/form-data; boundary={EDGE}"}
    return write_request("POST", "/v1/detect", headers, write_form(["image"], photo, {}))


async def send_scans(target: Target) -> None:
    """JPEGs of as many scans and pixels as are decoded."""
    await target.repeat(detect(target, slowest_jpeg()))


async def send_pixels(target: Target) -> None:
    """WebPs of as many pixels as are decoded."""
    await target.repeat(detect(target, flat_webp()))


async def enrol_many(target: Target) -> None:
    """Enrolments of as many embeddings as are taken."""
    row = [1.0] + [0.0] * (target.dimension - 1)
    body = json.dumps({"embeddings": [row] * 256}).encode()
    headers = target.write_key | {"Content-Type": "application/json"}
    await target.repeat(write_request("POST", "/v1/collections/attacked/people", headers, body))


async def stream_lines(target: Target) -> None:
    """A batch without an end of lines that are refused, whose answers are not read."""
    line = b'{"id": "1"}\n' * 1_000
    chunk = b"%x\r\n%s\r\n" % (len(line), line)
    reader, writer = await target.connect()
    with closing_soon(writer):
        writer.write(start_batch(target))
        while True:
            writer.write(chunk)
            await writer.drain()
            target.done["chunks"] += 1
            await asyncio.sleep(0)
            if reader.at_eof():
                return


async def trickle(target: Target) -> None:
    """A batch that sends a byte a second."""
    _, writer = await target.connect()
    with closing_soon(writer):
        writer.write(start_batch(target))
        while True:
            writer.write(b"1\r\nx\r\n")
            await writer.drain()
            await asyncio.sleep(1)


async def send_half(target: Target) -> None:
    """The beginning of a request, and then a byte a second, without a key."""
    _, writer = await target.connect()
    with closing_soon(writer):
        writer.write(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nX: ")
        while True:
            writer.write(b"y")
            await writer.drain()
            await asyncio.sleep(1)


async def leave_unread(target: Target) -> None:
    """Requests in a row for the largest answer that needs no key, none of which is read."""
    _, writer = await target.connect()
    with closing_soon(writer):
        writer.transport.pause_reading()
        while True:
            writer.write(write_request("GET", "/openapi.json") * 20)
            await writer.drain()
            await asyncio.sleep(0.5)


def start_batch(target: Target) -> bytes:
    """The beginning of a batch of probes."""
    chunked = {"Content-Type": "application/x-ndjson", "Transfer-Encoding": "chunked"}
    return write_request("POST", "/v1/collections/attacked/identify/batch", target.read_key | chunked)


ATTACKERS: dict[str, Attacker] = {
    "scans": send_scans,
    "pixels": send_pixels,
    "enrolments": enrol_many,
    "lines": stream_lines,
    "trickle": trickle,
    "half": send_half,
    "unread": leave_unread,
}


async def go_on(attacker: Attacker, target: Target) -> None:
    """An attacker who comes back whenever the server hangs up."""
    while True:
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, IndexError):
            await attacker(target)
        await asyncio.sleep(PAUSE_SECONDS)


async def attack(target: Target, kinds: list[str], count: int) -> None:
    """Let so many attackers, in turn of these kinds, do what they do until the input ends."""
    tasks = [asyncio.create_task(go_on(ATTACKERS[kinds[n % len(kinds)]], target)) for n in range(count)]
    print("attacking", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    for task in tasks:
        task.cancel()
    print(json.dumps(target.done), flush=True)


def main() -> None:
    """Attack as the file that is named says."""
    orders = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    kinds, count = orders.pop("kinds"), orders.pop("count")
    slowest_jpeg()  # made before anybody waits for it
    flat_webp()
    asyncio.run(attack(Target(**orders), kinds, count))


if __name__ == "__main__":
    main()
