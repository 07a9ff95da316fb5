"""How ordinary clients fare beside many attackers, and whether the server ends when it is told to."""

import json
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.shared.load import Load, run_load
from benchmarks.shared.server import Server as Address
from tests.attack.exchange import write_request
from tests.attack.ground import Ground, Server
from tests.attack.hostile.images import EDGE, write_form
from tests.attack.inputs import set_scene

CLIENTS = 4
LEAST_SHARE = 0.5  # of their throughput that ordinary clients keep
MOST_SECONDS = 5.0  # that all but one of a hundred ordinary requests take
DRAIN_SECONDS = 3  # before the port closes
GRACE_SECONDS = 30.0 + DRAIN_SECONDS + 2  # a request may take 30 s, and then what runs is cancelled
WARM_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Siege:
    """How ordinary clients fared before and during an attack, what attackers got, and how stopping went."""

    before: Load
    during: Load
    answers: dict[str, int]
    stop_seconds: float

    @property
    def share(self) -> float:
        """The share of their throughput that ordinary clients kept."""
        return self.during.per_second / self.before.per_second

    @property
    def p99_seconds(self) -> float:
        """What all but one of a hundred ordinary requests took at most."""
        return self.during.percentile(99) / 1000 if self.during.latencies else float("inf")

    @property
    def held(self) -> bool:
        """Whether ordinary clients could go on, and the server ended in time."""
        return (
            self.share >= LEAST_SHARE
            and self.p99_seconds < MOST_SECONDS
            and self.stop_seconds <= GRACE_SECONDS
        )


def besiege(ground: Ground, kinds: Iterable[str], attackers: int, seconds: float) -> Siege:
    """Measure ordinary clients alone, then beside the attackers, and stop the server in the middle of it."""
    with ground.serve(log_level="warning", drain_seconds=DRAIN_SECONDS) as server:
        scene = set_scene(ground, server)
        requests = [write_verify(server, ground, number) for number in range(len(ground.networks.photos))]
        address = Address(server.process.pid, server.address.host, server.address.port)
        run_load(address, requests, CLIENTS, seconds=WARM_SECONDS)
        before = run_load(address, requests, CLIENTS, seconds=seconds / 2)
        with attacking(server, list(kinds), attackers, len(scene.embedding)) as answers:
            time.sleep(WARM_SECONDS)
            during = run_load(address, requests, CLIENTS, seconds=seconds / 2)
            stop_seconds = server.stop()
    return Siege(before, during, answers, stop_seconds)


def write_verify(server: Server, ground: Ground, number: int) -> bytes:
    """An ordinary request: two photos to compare."""
    photos = ground.networks.photos
    body = write_form(["probe"], photos[number], {}).removesuffix(b"--edge--\r\n")
    body += write_form(["reference"], photos[(number + 1) % len(photos)], {})
    headers = server.authorization() | {"Content-Type": f"multipart/form-data; boundary={EDGE}"}
    return write_request("POST", "/v1/verify", headers, body)


@contextmanager
def attacking(server: Server, kinds: list[str], attackers: int, dimension: int) -> Iterator[dict[str, int]]:
    """Attack during the block; what the attackers got is in the result after it."""
    asked = {
        "host": server.address.host,
        "port": server.address.port,
        "read_key": server.keys["read"],
        "write_key": server.keys["write"],
        "dimension": dimension,
        "kinds": kinds,
        "attackers": attackers,
    }
    words = [sys.executable, "-m", "tests.attack.besiegers"]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    process.stdin.write(json.dumps(asked) + "\n")
    process.stdin.flush()
    process.stdout.readline()  # all have begun
    answers: dict[str, int] = {}
    try:
        yield answers
    finally:
        said, _ = process.communicate()
        answers.update(json.loads(said))
