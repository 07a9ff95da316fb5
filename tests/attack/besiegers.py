"""Attackers in a process of their own, cheap for themselves: what they send is made beforehand.

The first line of the input says whom to attack, how and by how many: `siege.attacking` writes it.
"""

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property

from tests.attack.crafted_photos import flat_webp, scan_bomb, slowest_jpeg
from tests.attack.exchange import write_request
from tests.attack.hostile.images import EDGE, write_form

PAUSE_SECONDS = 0.5  # after an answer or a cut: here they share the machine with their victim
TRICKLE_SECONDS = 1.0
STAFF = "/v1/collections/attacked"
HALF_A_REQUEST = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n"


@dataclass
class Target:
    """The server, keys for it, and what attackers have got from it."""

    host: str
    port: int
    read_key: str
    write_key: str
    dimension: int
    answers: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def connection(self, opened: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> Iterator[None]:
        """Abort a connection after the block."""
        try:
            yield
        finally:
            opened[1].transport.abort()

    async def ask(self, name: str, *parts: bytes) -> None:
        """Send the parts on a new connection, read the first line of the answer, and hang up."""
        reader, writer = opened = await asyncio.open_connection(self.host, self.port)
        with self.connection(opened):
            with suppress(OSError):
                for part in parts:
                    writer.write(part)
                    await writer.drain()
            line = await reader.readline()
        self.answers[f"{name} {line.split()[1].decode() if line.startswith(b'HTTP/1.1 ') else 'cut'}"] += 1

    async def keep_sending(self, name: str, first: bytes, again: bytes, seconds: float) -> None:
        """Send `first`, then `again` and again, reading nothing, until the server hangs up."""
        reader, writer = opened = await asyncio.open_connection(self.host, self.port, limit=1024)
        with self.connection(opened):
            writer.write(first)
            while not reader.at_eof():
                writer.write(again)
                await writer.drain()
                await asyncio.sleep(seconds)
        self.answers[f"{name} cut"] += 1

    def write(self, key: str, path: str, content_type: str, body: bytes | None = None, **more: str) -> bytes:
        """A POST with a key."""
        headers = {"Authorization": f"Bearer {key}", "Content-Type": content_type}
        return write_request("POST", path, headers | more, body)

    def detect(self, photo: bytes) -> bytes:
        """A request to have a photo decoded."""
        form = write_form(["image"], photo, {})
        return self.write(self.read_key, "/v1/detect", f"multipart/form-data; boundary={EDGE}", form)

    def enrol(self, count: int) -> bytes:
        """An enrolment by so many embeddings."""
        row = [1.0] + [0.0] * (self.dimension - 1)
        body = json.dumps({"embeddings": [row] * count}).encode()
        return self.write(self.write_key, f"{STAFF}/people", "application/json", body)

    def batch(self) -> bytes:
        """The beginning of a batch of probes."""
        chunked = {"Transfer-Encoding": "chunked"}
        return self.write(self.read_key, f"{STAFF}/identify/batch", "application/x-ndjson", **chunked)

    @cached_property
    def bomb(self) -> bytes:
        return self.detect(scan_bomb(20_000))

    @cached_property
    def slow(self) -> bytes:
        return self.detect(slowest_jpeg())

    @cached_property
    def pixels(self) -> bytes:
        return self.detect(flat_webp())

    @cached_property
    def thousands(self) -> bytes:
        return self.enrol(25_000)

    @cached_property
    def hundreds(self) -> bytes:
        return self.enrol(256)


Attack = Callable[[Target], Awaitable[None]]
LINES = b'{"id": "1"}\n' * 1_000
FILLER = b"X-Filler: " + b"x" * 8_000 + b"\r\n"

# The five gravest findings, as they were found.
GRAVEST: dict[str, Attack] = {
    "20,000 scans": lambda target: target.ask("scans", target.bomb),
    "endless headers": lambda target: target.ask("headers", HALF_A_REQUEST, *[FILLER] * 100),
    "deletes of `..`": lambda target: target.ask("parent", write_request("DELETE", f"{STAFF}/people/..")),
    "half a request": lambda target: target.keep_sending(
        "half", HALF_A_REQUEST + b"X: ", b"y", TRICKLE_SECONDS
    ),
    "25,000 embeddings": lambda target: target.ask("thousands", target.thousands),
}
# What cost ordinary clients most of all that is within the limits, tried alone. Batches that trickle,
# half-sent headers and idle connections cost them nothing that could be measured.
COSTLIEST: dict[str, Attack] = {
    "100 scans of 49 MP": lambda target: target.ask("slow", target.slow),
    "WebP of 49 MP": lambda target: target.ask("pixels", target.pixels),
    "endless batches": lambda target: target.keep_sending(
        "lines", target.batch(), b"%x\r\n%s\r\n" % (len(LINES), LINES), 0
    ),
    "256 embeddings": lambda target: target.ask("hundreds", target.hundreds),
    "unread contracts": lambda target: target.keep_sending(
        "unread", b"", write_request("GET", "/openapi.json") * 20, PAUSE_SECONDS
    ),
}
KINDS = GRAVEST | COSTLIEST


async def go_on(attack: Attack, target: Target) -> None:
    """An attacker who comes back however the server ends it."""
    while True:
        with suppress(OSError, ValueError):
            await attack(target)
        await asyncio.sleep(PAUSE_SECONDS)


async def besiege(target: Target, kinds: list[str], attackers: int) -> None:
    """Attack until the input ends."""
    target.slow, target.thousands, target.pixels, target.bomb, target.hundreds  # noqa: B018 - made beforehand
    tasks = [
        asyncio.create_task(go_on(KINDS[kinds[number % len(kinds)]], target)) for number in range(attackers)
    ]
    print("attacking", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def main() -> None:
    """Attack as the first line of the input says, until it ends, and print the answers."""
    asked = json.loads(sys.stdin.readline())
    kinds, attackers = asked.pop("kinds"), asked.pop("attackers")
    target = Target(**asked)
    asyncio.run(besiege(target, kinds, attackers))
    print(json.dumps(target.answers))


if __name__ == "__main__":
    main()
