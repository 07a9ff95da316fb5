"""Writers that should keep nobody waiting."""

import base64
import json
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np

from tests.attack.findings.outcome import Outcome
from tests.attack.findings.values import STAFF, embed
from tests.attack.ground import Ground, Server
from tests.model.people import random_units

LOCK_SECONDS = 8
LARGE_SECONDS = 15


class Readers:
    """Asks for what readers ask for, again and again, until the block ends."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.statuses: set[int] = set()
        self.slowest = 0.0
        self.count = 0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def __enter__(self) -> "Readers":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _ask(self) -> None:
        with self.server.client("read") as client:
            while not self._end.wait(0.05):
                for path in (f"{STAFF}/people", "/v1/collections", "/metrics", "/health/ready"):
                    started = time.monotonic()
                    self.statuses.add(client.get(path).status_code)
                    self.slowest = max(self.slowest, time.monotonic() - started)
                    self.count += 1

    @property
    def said(self) -> str:
        """How they fared, in a few words."""
        return f"{self.count} reads meanwhile are all 200, the slowest took {1000 * self.slowest:.0f} ms"


def send_thousands_of_embeddings(ground: Ground) -> Outcome:
    """Six enrolments of 25,000 embeddings at once, then for some seconds as many as are allowed."""
    with ground.serve() as server, server.client() as client:
        client.put(STAFF)
        one = random_units(1, len(embed(client, ground.photo)))[0]
        from_base64 = np.asarray(one, "<f4").tobytes()
        many = encode_people(from_base64, 25_000)
        largest = encode_people(from_base64, 256)
        with Readers(server) as readers, ThreadPoolExecutor(6) as senders:
            refused = list(senders.map(lambda _: post(server, many), range(6)))
            until = time.monotonic() + LARGE_SECONDS
            taken = list(senders.map(lambda _: repeat(lambda: post(server, largest), until), range(6)))
    enrolled = sum(map(len, taken))
    statuses = {status for each in taken for status in each}
    return Outcome(
        set(refused) <= {413, 422}
        and statuses == {201}
        and readers.statuses == {200}
        and readers.slowest < 3,
        f"25,000 embeddings are {refused[0]}; of 256 each, {enrolled} requests are enrolled in"
        f" {LARGE_SECONDS} s; {readers.said}",
    )


def encode_people(embedding: bytes, count: int) -> bytes:
    """A person of so many equal embeddings, as JSON."""
    return json.dumps({"embeddings": [base64.b64encode(embedding).decode()] * count}).encode()


def post(server: Server, body: bytes) -> int:
    """The status of an enrolment."""
    with server.client() as client:
        headers = {"content-type": "application/json"}
        return client.post(f"{STAFF}/people", content=body, headers=headers).status_code


def repeat(call: Callable[[], int], until: float) -> list[int]:
    """The results of a call that is made again and again until a moment."""
    results = [call()]
    while time.monotonic() < until:
        results.append(call())
    return results


def lock_the_database(ground: Ground) -> Outcome:
    """Twelve enrolments while another process holds the lock of the database for some seconds."""
    with ground.serve() as server, server.client() as client:
        client.put(STAFF)
        one = random_units(1, len(embed(client, ground.photo)))[0]
        body = encode_people(np.asarray(one, "<f4").tobytes(), 1)
        with (
            closing(sqlite3.connect(ground.data / "gallery.db", isolation_level=None)) as holder,
            ThreadPoolExecutor(12) as senders,
        ):
            holder.execute("BEGIN IMMEDIATE")
            writers = [senders.submit(post, server, body) for _ in range(12)]
            with Readers(server) as readers:
                time.sleep(LOCK_SECONDS)
            holder.execute("ROLLBACK")
            written = [writer.result() for writer in writers]
    return Outcome(
        readers.statuses == {200} and readers.slowest < 3 and set(written) == {201},
        f"the lock is held for {LOCK_SECONDS} s: {readers.said}; then all twelve are enrolled",
    )
