"""Three machines: hosts are killed and cut off, PostgreSQL is restarted, and nothing is lost.

`make torture` runs it for five minutes (SAMEFACE_SECONDS); it needs root, for network namespaces.
"""

import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.machines.clients import STAFF, Client, is_ready, list_everybody, run_all
from tests.machines.hosts import PostgresHost, SamefaceHost
from tests.machines.network import Network

SECONDS = float(os.environ.get("SAMEFACE_SECONDS", "20"))
CLIENTS = 8
RESTARTS = 5  # of PostgreSQL
READY_SECONDS = 90

pytestmark = pytest.mark.timeout(SECONDS + 400)


@pytest.fixture
def network() -> Iterator[Network]:
    network = Network()
    yield network
    network.remove()


@pytest.fixture
def database(network: Network) -> Iterator[PostgresHost]:
    host = PostgresHost(network)
    yield host
    host.remove()


@pytest.fixture
def hosts(
    network: Network, database: PostgresHost, data: Path, tmp_path: Path
) -> Iterator[list[SamefaceHost]]:
    models = data / "models"
    made = [SamefaceHost(network, name, tmp_path / name, models, database.url) for name in ("one", "two")]
    for host in made:
        host.start()
    yield made
    for host in made:
        host.kill()


def on(network: Network, name: str, work: Callable[[], object]) -> object:
    """What `work` returns on a host of the network."""
    found: list[object] = []
    run_all([network.thread(name, lambda: found.append(work()))])
    assert found, "it has failed: see the traceback of its thread"
    return found[0]


def wait_until_ready(network: Network, hosts: list[SamefaceHost]) -> None:
    until = time.monotonic() + READY_SECONDS
    for host in hosts:
        while not on(network, "clients", lambda host=host: is_ready(host.base_url)):
            assert time.monotonic() < until, host.log.read_text()[-3000:]
            time.sleep(0.2)


def trouble(network: Network, database: PostgresHost, hosts: list[SamefaceHost], until: float) -> list[str]:
    """Kill, cut off and restart by turns until the time is over; returns what was done."""
    chance, done = random.Random(1), []
    restarts = 0
    step = (until - time.monotonic()) / (2 * RESTARTS + 1)
    for turn in range(2 * RESTARTS):
        host = hosts[chance.randrange(len(hosts))]
        if turn % 2 == 0:
            database.control("restart", "-m", "immediate" if restarts % 2 else "fast")
            restarts += 1
            done.append("restart")
        elif turn % 4 == 1:
            host.kill()
            time.sleep(step / 4)
            host.start()
            done.append("kill")
        else:
            network.cut(host.name)
            time.sleep(step / 2)
            network.join(host.name)
            done.append("cut")
        time.sleep(max(0.0, step * chance.uniform(0.3, 0.7)))
    return done


def test_nothing_is_missed_and_nobody_deleted_is_answered(
    network: Network, database: PostgresHost, hosts: list[SamefaceHost]
) -> None:
    network.add("clients")
    wait_until_ready(network, hosts)
    made = on(network, "clients", lambda: httpx.put(hosts[0].base_url + STAFF))
    assert made.status_code == 201, made.text
    until = time.monotonic() + SECONDS
    addresses = [host.base_url for host in hosts]
    clients = [Client(addresses, number, until) for number in range(CLIENTS)]
    done: list[str] = []
    troubling = threading.Thread(target=lambda: done.extend(trouble(network, database, hosts, until)))
    run_all([*(network.thread("clients", client.work) for client in clients), troubling])
    assert [fault for client in clients for fault in client.faults] == []
    assert done.count("restart") == RESTARTS

    wait_until_ready(network, hosts)
    enrolled, deleted, uncertain = (
        set().union(*(getattr(client, name) for client in clients))
        for name in ("enrolled", "deleted", "uncertain")
    )
    for address in addresses:
        everybody = on(network, "clients", lambda address=address: list_everybody(address))
        assert enrolled <= everybody
        assert not deleted & everybody
        assert everybody <= enrolled | uncertain
    for host in hosts:
        host.check()
    answered, unanswered = (
        sum(getattr(each, name) for each in clients) for name in ("answered", "unanswered")
    )
    print(
        f"\n{SECONDS:.0f} s: {answered} requests answered, {unanswered} not; {len(enrolled)} enrolled, "
        f"{len(deleted)} forgotten, {len(uncertain)} uncertain; {', '.join(done)}"
    )
    assert answered > 5 * SECONDS
    assert len(deleted) > 5
