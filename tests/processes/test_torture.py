"""Nothing lost: the server is killed at random moments, again and again.

`make test` kills it a few times, `make torture` two hundred.
"""

import json
import os
import random
import signal
import threading
import time
from contextlib import closing
from pathlib import Path

import httpx
import numpy as np
import pytest

from sameface.model.access.audit.check_audit import check_audit
from sameface.model.store.store import Store
from sameface.model.upkeep.check_gallery import check_gallery
from tests.conftest import address_of, wait_for
from tests.model.people import random_units
from tests.networks import DIMENSION

KILLS = int(os.environ.get("SAMEFACE_KILLS", "3"))
CLIENTS = 3
STAFF = "/v1/collections/staff"


class Ledger:
    """What the server acknowledged, and what it may or may not have done when it was killed."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.enrolled: dict[str, np.ndarray] = {}
        self.deleted: dict[str, np.ndarray] = {}
        self.uncertain: set[str] = set()
        self.count = 0

    @property
    def acknowledged(self) -> int:
        """The number of people whose last change was acknowledged."""
        return len(self.enrolled) + len(self.deleted)

    def next_person(self) -> tuple[str, np.ndarray]:
        with self.lock:
            self.count += 1
            return f"p{self.count}", random_units(1, DIMENSION, self.count)[0]


def work(address: httpx.URL, ledger: Ledger, seed: int) -> None:
    """Enrol and delete until the server is gone."""
    choose = random.Random(seed)
    mine: list[str] = []
    with httpx.Client(base_url=address, timeout=10) as client:
        try:
            while True:
                if mine and choose.random() < 0.4:
                    person_id = mine.pop(choose.randrange(len(mine)))
                    embedding = ledger.enrolled.pop(person_id)
                    ledger.uncertain.add(person_id)
                    assert client.delete(f"{STAFF}/people/{person_id}").status_code == 204
                    ledger.deleted[person_id] = embedding
                else:
                    person_id, embedding = ledger.next_person()
                    ledger.uncertain.add(person_id)
                    body = {"person_id": person_id, "embeddings": [embedding.tolist()]}
                    assert client.post(f"{STAFF}/people", json=body).status_code == 201
                    ledger.enrolled[person_id] = embedding
                    mine.append(person_id)
                ledger.uncertain.discard(person_id)
        except httpx.TransportError:
            return


def check(address: httpx.URL, ledger: Ledger) -> None:
    """Every acknowledged enrolment is found by a search, no acknowledged delete is."""
    with httpx.Client(base_url=address, timeout=30) as client:
        everyone: set[str] = set()
        cursor = ""
        while cursor is not None:
            page = client.get(f"{STAFF}/people", params={"limit": 1000, "cursor": cursor}).json()
            everyone |= {person["person_id"] for person in page["items"]}
            cursor = page["next_cursor"]
        assert ledger.enrolled.keys() <= everyone
        assert not ledger.deleted.keys() & everyone
        assert everyone <= ledger.enrolled.keys() | ledger.uncertain
        check_entries(client, ledger)
        sample = list(ledger.enrolled)[-40:] + list(ledger.deleted)[-40:]
        for person_id in sample:
            embedding = ledger.enrolled.get(person_id, ledger.deleted.get(person_id))
            [result] = client.post(f"{STAFF}/identify", json={"embedding": embedding.tolist()}).json()[
                "results"
            ]
            found = [candidate["person_id"] for candidate in result["candidates"]]
            assert (person_id in found) is (person_id in ledger.enrolled)


def check_entries(client: httpx.Client, ledger: Ledger) -> None:
    """Every acknowledged change has its entry in the audit, and who is enrolled or deleted has no other."""
    changes: dict[str, list[str]] = {}
    cursor = ""
    while cursor is not None:
        page = client.get("/v1/audit", params={"limit": 1000, "cursor": cursor}).json()
        for entry in page["items"]:
            if entry["action"] in ("enroll_person", "forget_person"):
                changes.setdefault(entry["person_id"], []).insert(0, entry["action"])
        cursor = page["next_cursor"]
    for person_id in ledger.enrolled:
        assert changes[person_id] == ["enroll_person"]
    for person_id in ledger.deleted:
        assert changes[person_id] == ["enroll_person", "forget_person"]


def check_chains(path: Path) -> None:
    with closing(Store(path)) as store:
        assert check_audit(store).faults == []


@pytest.mark.timeout(60 + 10 * KILLS)
def test_nothing_acknowledged_is_lost_however_often_the_server_is_killed(start, tmp_path: Path) -> None:
    ledger, chance = Ledger(), random.Random(1)
    for kill in range(KILLS):
        process = start("--log-level", "error", SAMEFACE_DATA=str(tmp_path))
        address = address_of(process)
        if kill == 0:
            assert httpx.put(f"{address}{STAFF}").status_code == 201
        check(address, ledger)
        enough = ledger.acknowledged + CLIENTS
        seeds = [1000 * kill + number for number in range(CLIENTS)]
        clients = [threading.Thread(target=work, args=(address, ledger, seed)) for seed in seeds]
        for client in clients:
            client.start()
        wait_for(lambda least=enough: ledger.acknowledged > least)
        time.sleep(chance.uniform(0, 0.5))
        process.send_signal(signal.SIGKILL)
        process.wait()
        for client in clients:
            client.join()
        assert check_gallery(tmp_path / "gallery.db") == []
        check_chains(tmp_path / "gallery.db")
    check(address_of(start("--log-level", "error", SAMEFACE_DATA=str(tmp_path))), ledger)
    assert ledger.enrolled
    assert ledger.deleted


def test_a_batch_that_was_cut_by_a_kill_is_finished_by_its_retry(start, tmp_path: Path) -> None:
    """The answers that came before the kill stay, and nobody is enrolled twice."""
    people = random_units(3000, DIMENSION, 5)
    lines = [
        json.dumps({"id": str(n), "person_id": f"p{n}", "embedding": row.tolist()}).encode() + b"\n"
        for n, row in enumerate(people)
    ]
    headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": "once"}
    process = start("--log-level", "error", SAMEFACE_DATA=str(tmp_path))
    address = f"{address_of(process)}{STAFF}"
    assert httpx.put(address).status_code == 201
    before: list[str] = []
    try:
        with httpx.stream(
            "POST", f"{address}/people/batch", content=iter(lines), headers=headers, timeout=60
        ) as response:
            for line in response.iter_lines():
                before.append(line)
                if len(before) == 300:
                    process.send_signal(signal.SIGKILL)
    except httpx.TransportError:
        pass
    process.wait()
    assert 300 <= len(before) < len(people)
    address = f"{address_of(start('--log-level', 'error', SAMEFACE_DATA=str(tmp_path)))}{STAFF}"
    survived = httpx.get(address).json()["faces"]
    assert len(before) <= survived < len(people)
    retry = httpx.post(f"{address}/people/batch", content=b"".join(lines), headers=headers, timeout=60)
    after = retry.text.splitlines()
    assert [json.loads(line) for line in after[: len(before)]] == [json.loads(line) for line in before]
    assert httpx.get(address).json()["faces"] == len(after) == len(people)
    assert check_gallery(tmp_path / "gallery.db") == []
