"""Three machines: hosts are killed and cut off, PostgreSQL and Milvus fall over, and nothing is lost.

`make torture` runs it for five minutes (SAMEFACE_SECONDS); it needs root, for network namespaces.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

from benchmarks.rivals.milvus_server import MilvusServer
from tests.machines.clients import STAFF, Client, find_everybody, is_ready, list_everybody, run_all
from tests.machines.hosts import PostgresHost, SamefaceHost, start_milvus
from tests.machines.network import Network
from tests.machines.trouble import RESTARTS, Trouble

SECONDS = float(os.environ.get("SAMEFACE_SECONDS", "20"))
CLIENTS = 8
READY_SECONDS = 90

pytestmark = pytest.mark.timeout(SECONDS + 500)


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


@pytest.fixture(params=["faiss", "milvus"])
def milvus(
    request: pytest.FixtureRequest, network: Network, database: PostgresHost, tmp_path: Path
) -> Iterator[MilvusServer | None]:
    """Milvus on the database's host, or None: the hosts then search with FAISS."""
    server = start_milvus(network, database, tmp_path / "milvus") if request.param == "milvus" else None
    yield server
    if server:
        server.kill()


@pytest.fixture
def hosts(
    network: Network, database: PostgresHost, milvus: MilvusServer | None, data: Path, tmp_path: Path
) -> Iterator[list[SamefaceHost]]:
    settings = {"SAMEFACE_DATABASE": database.url}
    if milvus:
        settings |= {"SAMEFACE_INDEX": "milvus", "SAMEFACE_MILVUS_URI": milvus.uri}
    models = data / "models"
    made = [SamefaceHost(network, name, tmp_path / name, models, settings) for name in ("one", "two")]
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


def test_nothing_is_missed_and_nobody_deleted_is_answered(
    network: Network, database: PostgresHost, milvus: MilvusServer | None, hosts: list[SamefaceHost]
) -> None:
    network.add("clients")
    wait_until_ready(network, hosts)
    made = on(network, "clients", lambda: httpx.put(hosts[0].base_url + STAFF))
    assert made.status_code == 201, made.text
    until = time.monotonic() + SECONDS
    addresses = [host.base_url for host in hosts]
    clients = [Client(addresses, number, until) for number in range(CLIENTS)]
    trouble = Trouble(network, database, hosts, milvus, until)
    run_all(
        [
            *(network.thread("clients", client.work) for client in clients),
            threading.Thread(target=trouble.make),
        ]
    )
    print(f"\n{SECONDS:.0f} s: {', '.join(trouble.done)}")
    assert [fault for client in clients for fault in client.faults] == []
    assert sum("PostgreSQL" in each for each in trouble.done) == RESTARTS
    wait_until_ready(network, hosts)
    expect_what_was_promised(network, hosts, clients)


def expect_what_was_promised(network: Network, hosts: list[SamefaceHost], clients: list[Client]) -> None:
    """Each host lists and finds everybody who was acknowledged, nobody who was deleted, and checks clean."""
    enrolled: dict[str, np.ndarray] = {}
    deleted: dict[str, np.ndarray] = {}
    for client in clients:
        enrolled |= client.enrolled
        deleted |= client.deleted
    uncertain = set().union(*(client.uncertain for client in clients))
    for address in [host.base_url for host in hosts]:
        everybody = on(network, "clients", lambda address=address: list_everybody(address))
        assert enrolled.keys() <= everybody
        assert not deleted.keys() & everybody
        assert everybody <= enrolled.keys() | uncertain
        found = on(network, "clients", lambda address=address: find_everybody(address, enrolled | deleted))
        assert found == enrolled.keys()
    for host in hosts:
        host.check()
    answered, unanswered = (
        sum(getattr(each, name) for each in clients) for name in ("answered", "unanswered")
    )
    print(
        f"{answered} requests answered, {unanswered} not; {len(enrolled)} enrolled, {len(deleted)} forgotten,"
        f" {len(uncertain)} uncertain; `gallery check` is clean on both hosts"
    )
    assert answered > 5 * SECONDS
    assert len(deleted) > 5
