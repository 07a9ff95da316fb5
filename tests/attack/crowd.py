"""Many attackers at once, ordinary clients beside them, and an end in the middle of it."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.shared.load import Load, run_load
from benchmarks.shared.server import Server as Address
from tests.attack.exchange import write_request
from tests.attack.ground import Ground, Server
from tests.attack.hostile.images import EDGE
from tests.attack.inputs import set_scene

CLIENTS = 4
GRACE_SECONDS = 30  # of a request that has begun, after which the server ends all the same
LEAST_SHARE = 0.5  # of their throughput that ordinary clients keep
MOST_SECONDS = 5.0  # that ordinary requests take, but for one of a hundred
WARM_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Crowd:
    """How ordinary clients fared before and during an attack, and how long the server took to end."""

    before: Load
    during: Load
    stop_seconds: float
    attackers_did: str

    @property
    def share(self) -> float:
        """The share of the throughput that was left."""
        return self.during.per_second / self.before.per_second

    @property
    def p99_seconds(self) -> float:
        """What all but one of a hundred ordinary requests took at most, during the attack."""
        return self.during.percentile(99) / 1000 if self.during.latencies else float("inf")

    @property
    def held(self) -> bool:
        """Whether ordinary clients could go on, and the server ended in time."""
        return (
            self.share >= LEAST_SHARE
            and self.p99_seconds < MOST_SECONDS
            and self.stop_seconds <= GRACE_SECONDS + 2
        )


def meet_the_crowd(ground: Ground, kinds: list[str], attackers: int, seconds: float) -> Crowd:
    """Measure ordinary clients alone, then beside the attackers, and stop the server in the middle."""
    with ground.serve(log_level="warning") as server:
        scene = set_scene(ground, server)
        requests = [verify(server, ground, number) for number in range(len(ground.networks.photos))]
        address = Address(server.process.pid, server.address.host, server.address.port)
        run_load(address, requests, CLIENTS, seconds=WARM_SECONDS)
        before = run_load(address, requests, CLIENTS, seconds=seconds / 3)
        with attacking(ground, server, len(scene.embedding), kinds, attackers) as said:
            time.sleep(WARM_SECONDS)
            during = run_load(address, requests, CLIENTS, seconds=seconds / 2)
            stopped = server.stop()
    return Crowd(before, during, stopped, said[0])


def verify(server: Server, ground: Ground, number: int) -> bytes:
    """An ordinary request: two photos to compare."""
    photos = ground.networks.photos
    pair = {"probe": photos[number], "reference": photos[(number + 1) % len(photos)]}
    part = b'--edge\r\nContent-Disposition: form-data; name="%s"; filename="a.jpg"\r\n\r\n%s\r\n'
    body = b"".join(part % (name.encode(), photo) for name, photo in pair.items()) + b"--edge--\r\n"
    headers = server.authorization() | {"Content-Type": f"multipart/form-data; boundary={EDGE}"}
    return write_request("POST", "/v1/verify", headers, body)


@contextmanager
def attacking(
    ground: Ground, server: Server, dimension: int, kinds: list[str], attackers: int
) -> Iterator[list[str]]:
    """Attackers in a process of their own during the block; yields a list that gets what they did."""
    orders = ground.folder / "orders.json"
    target = {"host": server.address.host, "port": server.address.port, "dimension": dimension}
    keys = {"read_key": server.keys["read"], "write_key": server.keys["write"]}
    orders.write_text(json.dumps({**target, **keys, "kinds": kinds, "count": attackers}))
    words = [sys.executable, "-m", "tests.attack.attackers", str(orders)]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    said: list[str] = []
    try:
        process.stdout.readline()
        yield said
    finally:
        output, _ = process.communicate()
        said.append(output.strip())
