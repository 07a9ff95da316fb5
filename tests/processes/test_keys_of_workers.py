"""Keys and limits over several processes that serve together."""

import threading
import time
from contextlib import closing
from pathlib import Path

import httpx

from sameface.model.store.access.api_key import KeyLimits
from sameface.model.store.store import Store
from tests.api.keys import add_key, bearer
from tests.conftest import address_of, wait_for
from tests.pictures import photo_of
from tests.postgres_server import gallery_in
from tests.processes.test_workers import TWO, workers_of

CLIENTS = 64
ASKED = 4  # photos that each client sends, or tries to


def test_a_limit_holds_over_processes_and_costs_others_nothing(start, tmp_path: Path) -> None:
    with closing(Store(gallery_in(tmp_path))) as store:
        limited, _ = add_key(store, "read", limits=KeyLimits(photos_per_minute=60))
        free, _ = add_key(store, "read")
    process = start(*TWO, SAMEFACE_DATA=str(tmp_path), SAMEFACE_QUEUE="100")
    address = address_of(process)
    assert len(workers_of(process)) == 2
    answers: dict[str, list[int]] = {limited: [], free: []}

    def ask(secret: str) -> None:
        for _ in range(ASKED):  # each on a new connection, to whichever process takes it
            files = {"image": photo_of(1)}
            answer = httpx.post(f"{address}/v1/detect", files=files, headers=bearer(secret), timeout=60)
            answers[secret].append(answer.status_code)

    began = time.monotonic()
    threads = [threading.Thread(target=ask, args=[secret]) for secret in (limited, free) * (CLIENTS // 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    minutes = 1 + (time.monotonic() - began) // 60  # more than one on a machine that is very busy
    assert answers[free] == [200] * (ASKED * CLIENTS // 2)
    assert 60 <= answers[limited].count(200) <= 60 * minutes
    assert set(answers[limited]) == {200, 429}


def test_a_key_that_is_revoked_stops_working_in_every_process_within_a_second(start, tmp_path: Path) -> None:
    process = start(*TWO, SAMEFACE_DATA=str(tmp_path))
    address = address_of(process)

    def answers(**headers: str) -> set[int]:
        return {httpx.get(f"{address}/v1/models", headers=headers).status_code for _ in range(20)}

    assert answers() == {200}
    with closing(Store(gallery_in(tmp_path))) as store:
        secret, key = add_key(store, "read")
        time.sleep(1)
        assert answers() == {401}
        assert answers(**bearer(secret)) == {200}
        store.keys.revoke(key.key_id)
        time.sleep(1)
        assert answers(**bearer(secret)) == {401}


def test_off_loopback_a_server_starts_with_a_key_in_the_store(start, tmp_path: Path) -> None:
    refused = start("--host", "0.0.0.0", SAMEFACE_DATA=str(tmp_path))
    assert "keys create" in refused.stdout.read()
    assert refused.wait(timeout=20) == 2
    with closing(Store(gallery_in(tmp_path))) as store:
        secret, _ = add_key(store, "read")
    address = address_of(start("--host", "0.0.0.0", SAMEFACE_DATA=str(tmp_path)))
    local = f"http://127.0.0.1:{address.port}/v1/models"
    wait_for(lambda: httpx.get(local, headers=bearer(secret)).status_code == 200)
    assert httpx.get(local).status_code == 401
