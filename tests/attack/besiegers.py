"""Attackers, in a process of their own: each does one of the five gravest things again and again.

python -m tests.attack.besiegers < {"host": ..., "port": ..., "key": ..., "attackers": 64}
"""

import asyncio
import base64
import json
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from tests.attack.crafted_photos import scan_bomb
from tests.attack.exchange import write_request

PAUSE_SECONDS = 0.5  # between two attacks of one attacker: here they share the machine with their victim
HOLD_SECONDS = 60.0
EMBEDDINGS = 25_000
DIMENSION = 128
HEADER = b"X-Filler: " + b"x" * 8_000 + b"\r\n"


@dataclass(frozen=True, slots=True)
class Target:
    """The server, and a key for it."""

    host: str
    port: int
    key: str

    def write(self, method: str, path: str, content_type: str = "", body: bytes | None = None) -> bytes:
        """A request with the key."""
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": content_type}
        return write_request(method, path, headers, body)


Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Attack = Callable[[Target, Connection], Awaitable[str]]


async def send_scans(target: Target, connection: Connection) -> str:
    """A JPEG of 20,000 scans (finding 1)."""
    return await send(connection, target.write("POST", "/v1/detect", FORM, in_form(scan_bomb(20_000))))


async def send_headers(_: Target, connection: Connection) -> str:
    """Headers without an end, before any key (finding 2)."""
    return await send(connection, b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n", *[HEADER] * 100)


async def delete_a_parent(target: Target, connection: Connection) -> str:
    """A delete whose path is meant to be normalised to the collection (finding 3)."""
    return await send(connection, target.write("DELETE", "/v1/collections/ordinary/people/.."))


async def hold(_: Target, connection: Connection) -> str:
    """Half a request, and then nothing (finding 4)."""
    reader, writer = connection
    writer.write(b"GET /health/live HTTP/1.1\r\nHost: local")
    with suppress(TimeoutError):
        async with asyncio.timeout(HOLD_SECONDS):
            await reader.read()
            return "cut"
    return "held"


async def send_embeddings(target: Target, connection: Connection) -> str:
    """An enrolment by 25,000 embeddings (finding 5)."""
    return await send(
        connection, target.write("POST", "/v1/collections/ordinary/people", "application/json", THOUSANDS)
    )


ATTACKS: tuple[Attack, ...] = (send_scans, send_headers, delete_a_parent, hold, send_embeddings)
FORM = "multipart/form-data; boundary=edge"
ONE = base64.b64encode(bytes(4 * DIMENSION - 4) + b"\0\0\x80\x3f").decode()
THOUSANDS = json.dumps({"embeddings": [ONE] * EMBEDDINGS}).encode()


def in_form(photo: bytes) -> bytes:
    """The photo as the field `image` of a form."""
    head = b'--edge\r\nContent-Disposition: form-data; name="image"; filename="a.jpg"\r\n\r\n'
    return head + photo + b"\r\n--edge--\r\n"


async def send(connection: Connection, *parts: bytes) -> str:
    """Send the parts; returns the status of the answer, or that there was none."""
    reader, writer = connection
    with suppress(OSError):
        for part in parts:
            writer.write(part)
            await writer.drain()
    line = await reader.readline()
    return line.split()[1].decode() if line.startswith(b"HTTP/1.1 ") else "cut"


async def attack_for_ever(target: Target, attack: Attack, answers: Counter[str]) -> None:
    """One attacker: a new connection for every attack."""
    while True:
        try:
            connection = await asyncio.open_connection(target.host, target.port)
            try:
                word = await attack(target, connection)
            finally:
                connection[1].transport.abort()
        except OSError:
            word = "cut"
        answers[f"{attack.__name__} {word}"] += 1
        await asyncio.sleep(PAUSE_SECONDS)


async def besiege(target: Target, attackers: int, answers: Counter[str]) -> None:
    """Attack until the input ends."""
    tasks = [
        asyncio.create_task(attack_for_ever(target, ATTACKS[number % len(ATTACKS)], answers))
        for number in range(attackers)
    ]
    await asyncio.to_thread(sys.stdin.read)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def main() -> None:
    """Attack the server that the first line of the input names, and print the answers."""
    asked = json.loads(sys.stdin.readline())
    answers: Counter[str] = Counter()
    asyncio.run(besiege(Target(asked["host"], asked["port"], asked["key"]), asked["attackers"], answers))
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
