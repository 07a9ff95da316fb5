"""`sameface serve --workers 2`: two processes that behave like one."""

import itertools
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import httpx
import numpy as np
import pytest

from sameface.api.metrics import remove_leftovers
from tests.conftest import address_of, wait_for
from tests.model.people import random_units
from tests.networks import DIMENSION

SECONDS = float(os.environ.get("SAMEFACE_SECONDS", "4"))
TWO = ("--workers", "2", "--log-level", "warning")


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    return [int(number) for number in children.split()]


class Client:
    """Enrols and deletes its own people and searches for them, each time on a new connection."""

    def __init__(self, staff: str, number: int) -> None:
        self.staff = staff
        self.number = number
        self.missed: list[str] = []
        self.turns = 0

    def work(self, until: float) -> None:
        for turn in itertools.count():
            if time.monotonic() > until:
                return
            self.turns += 1
            person_id, [embedding] = (
                f"c{self.number}-{turn}",
                random_units(1, DIMENSION, 100_000 * self.number + turn),
            )
            body = {"person_id": person_id, "embeddings": [embedding.tolist()]}
            assert self.ask("POST", "/people", json=body).status_code == 201
            self.expect(person_id, embedding, found=True)
            assert self.ask("DELETE", f"/people/{person_id}").status_code == 204
            self.expect(person_id, embedding, found=False)

    def expect(self, person_id: str, embedding: np.ndarray, *, found: bool) -> None:
        for _ in range(3):
            probe = {"embedding": embedding.tolist(), "limit": 50}
            [result] = self.ask("POST", "/identify", json=probe).json()["results"]
            candidates = [candidate["person_id"] for candidate in result["candidates"]]
            if (person_id in candidates) is not found:
                self.missed.append(f"{person_id} {'enrolled' if found else 'deleted'}")

    def ask(self, method: str, path: str, **options: object) -> httpx.Response:
        """An answer of a process that has loaded its networks."""
        while (response := httpx.request(method, f"{self.staff}{path}", **options)).status_code == 503:
            time.sleep(0.05)
        return response


@pytest.mark.timeout(60 + 2 * SECONDS)
def test_no_client_ever_misses_its_own_write_or_sees_its_own_delete(start, tmp_path: Path) -> None:
    """For a few seconds in `make test`, for a minute in `make torture`."""
    process = start(*TWO, SAMEFACE_DATA=str(tmp_path))
    staff = f"{address_of(process)}/v1/collections/staff"
    assert len(workers_of(process)) == 2
    wait_for(lambda: httpx.put(staff).status_code in (200, 201))
    clients = [Client(staff, number) for number in range(8)]
    until = time.monotonic() + SECONDS
    threads = [threading.Thread(target=client.work, args=[until]) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [client.missed for client in clients] == [[]] * 8
    assert all(client.turns for client in clients)


def test_a_worker_that_dies_is_replaced_and_sigterm_ends_all(start, tmp_path: Path) -> None:
    process = start(*TWO, SAMEFACE_DATA=str(tmp_path))
    address = address_of(process)
    victim, survivor = workers_of(process)
    os.kill(victim, signal.SIGKILL)
    wait_for(lambda: len(workers_of(process)) == 2 and victim not in workers_of(process))
    wait_for(lambda: httpx.get(f"{address}/health/live").status_code == 200)
    process.terminate()
    assert process.wait(timeout=20) == 0
    assert not Path(f"/proc/{survivor}").exists()


def test_no_client_meets_a_worker_that_is_still_loading(start, tmp_path: Path) -> None:
    process = start(*TWO, "--data", str(tmp_path))
    address = address_of(process)
    statuses: list[int] = []
    for killed in range(3):
        os.kill(workers_of(process)[killed % 2], signal.SIGKILL)
        until = time.monotonic() + 1.5  # a new worker has loaded by then
        while time.monotonic() < until or len(statuses) < 7 * (killed + 1):
            with suppress(httpx.TransportError):  # those that the killed worker had accepted
                statuses.append(httpx.get(f"{address}/health/ready").status_code)
    assert set(statuses) == {200}


def test_workers_do_not_outlive_a_supervisor_that_was_killed(start, tmp_path: Path) -> None:
    process = start(*TWO, SAMEFACE_DATA=str(tmp_path))
    address_of(process)
    workers = workers_of(process)
    process.kill()
    wait_for(lambda: not any(is_running(worker) for worker in workers))


def is_running(process: int) -> bool:
    """A zombie that nobody has waited for yet does not run."""
    try:
        return ") Z " not in Path(f"/proc/{process}/stat").read_text()
    except FileNotFoundError:
        return False


def test_workers_that_cannot_serve_end_with_an_error(start, tmp_path: Path) -> None:
    process = start(*TWO, "--recognizer", str(tmp_path))
    output = process.stdout.read()
    assert process.wait(timeout=20) == 2
    assert "no bundle" in output


def test_metrics_are_those_of_all_processes(start) -> None:
    process = start(*TWO)
    address = address_of(process)
    wait_for(lambda: len(workers_of(process)) == 2)
    for _ in range(20):
        httpx.get(f"{address}/v1/models")  # each on a new connection, to whichever process takes it

    def count() -> float:
        text = httpx.get(f"{address}/metrics").text
        return sum(
            map(float, re.findall(r'^sameface_requests_total{.*route="/v1/models".*} (.*)$', text, re.M))
        )

    assert count() == 20
    os.kill(workers_of(process)[0], signal.SIGKILL)
    wait_for(lambda: len(workers_of(process)) == 2)
    assert count() == 20  # what a process has counted is not lost with it


def test_what_a_killed_supervisor_left_is_cleared_away(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name in ("sameface-metrics-999999999-x", f"sameface-metrics-{os.getpid()}-y", "sameface-metrics-z"):
        (tmp_path / name).mkdir()
    remove_leftovers()
    assert {path.name for path in tmp_path.iterdir()} == {
        f"sameface-metrics-{os.getpid()}-y",
        "sameface-metrics-z",
    }
