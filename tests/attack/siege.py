"""How ordinary clients fare while 64 attackers do the five gravest things, and whether the server stops."""

import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx

from tests.attack.ground import Ground, Server

ATTACKERS = 64
CLIENTS = 4
LEAST_SHARE = 0.5
MOST_P99_SECONDS = 5.0
GRACE_SECONDS = 33.0  # a request may take 30 s, and draining 3


@dataclass(frozen=True, slots=True)
class Service:
    """What ordinary clients got in a while."""

    per_second: float
    p99_seconds: float
    statuses: dict[int, int]


@dataclass(frozen=True, slots=True)
class Siege:
    """The service before and during the attack, what the attackers got, and how long stopping took."""

    before: Service
    during: Service
    answers: dict[str, int]
    stopped_after: float

    @property
    def held(self) -> bool:
        """Whether the server kept what is promised."""
        return (
            self.during.per_second >= LEAST_SHARE * self.before.per_second
            and self.during.p99_seconds < MOST_P99_SECONDS
            and self.stopped_after <= GRACE_SECONDS
        )

    def describe(self) -> str:
        """What happened, in a few sentences."""
        share = self.during.per_second / self.before.per_second
        return (
            f"{ATTACKERS} attackers do the five gravest things at once; {CLIENTS} ordinary clients compare photos:"
            f" {self.before.per_second:.1f} a second before, {self.during.per_second:.1f} during it ({share:.2f}),"
            f" all but 1 % of them within {self.during.p99_seconds:.2f} s. Stopped in the middle of it, the server"
            f" ended after {self.stopped_after:.1f} s."
        )


def besiege(ground: Ground, seconds: float = 30.0, attackers: int = ATTACKERS) -> Siege:
    """Measure ordinary clients without and with attackers, and stop the server while it is attacked."""
    with ground.serve() as server:
        with server.client() as client:
            client.put("/v1/collections/ordinary")
        measure_service(ground, server, seconds / 5)
        before = measure_service(ground, server, seconds)
        with attacking(server, attackers) as answers:
            time.sleep(2)  # until all have begun
            during = measure_service(ground, server, seconds)
            stopped_after = server.stop()
    return Siege(before, during, answers, stopped_after)


@contextmanager
def attacking(server: Server, attackers: int) -> Iterator[dict[str, int]]:
    """Attack during the block; what the attackers got is in the result after it."""
    answers: dict[str, int] = {}
    words = [sys.executable, "-m", "tests.attack.besiegers"]
    asked = {"host": server.address.host, "port": server.address.port, "key": server.keys["read+write"]}
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    process.stdin.write(json.dumps(asked | {"attackers": attackers}) + "\n")
    process.stdin.flush()
    try:
        yield answers
    finally:
        said, _ = process.communicate()
        answers.update(json.loads(said))


def measure_service(ground: Ground, server: Server, seconds: float) -> Service:
    """What a few clients get who compare photos, each one pair after the other."""
    took: list[float] = []
    statuses: dict[int, int] = {}
    until = time.monotonic() + seconds

    def ask_on(place: int) -> None:
        photos = ground.networks.photos
        with server.client() as client:
            while time.monotonic() < until:
                place += 1
                pair = {"probe": photos[place % len(photos)], "reference": photos[(place + 1) % len(photos)]}
                started = time.monotonic()
                try:
                    status = client.post("/v1/verify", files=pair).status_code
                except httpx.TransportError:
                    status = 0
                took.append(time.monotonic() - started)
                statuses[status] = statuses.get(status, 0) + 1

    threads = [threading.Thread(target=ask_on, args=(place,)) for place in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    p99 = statistics.quantiles(took, n=100)[98] if len(took) > 1 else seconds
    return Service(statuses.get(200, 0) / seconds, p99, statuses)
