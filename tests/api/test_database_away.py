"""PostgreSQL is stopped and started in the middle of things: nothing that was acknowledged is lost."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from sameface.model.data_folder import SharedGallery
from sameface.model.upkeep.check_gallery import check_gallery
from tests.api.collections import enrol, make_collection
from tests.api.problems import expect
from tests.conftest import Serve, wait_for
from tests.pictures import photo_of
from tests.postgres_server import ON_POSTGRES, PostgresServer

pytestmark = pytest.mark.skipif(not ON_POSTGRES, reason="`make postgres` stops and starts a server")


@pytest.fixture
def home(data: Path, own_server: PostgresServer, tmp_path: Path) -> dict[str, object]:
    models = {"recognizer": data / "models" / "recogniser", "detector": data / "models" / "detector"}
    return {"data": tmp_path, "database": own_server.url_of(tmp_path), **models}


def identify(client: httpx.Client, staff: str, number: int) -> httpx.Response:
    return client.post(f"{staff}/identify", files={"image": photo_of(number)})


def test_while_it_is_away_requests_are_told_to_come_back_and_then_answered(
    serve: Serve, home: dict[str, object], own_server: PostgresServer
) -> None:
    with serve(**home) as client:
        staff = make_collection(client)
        assert enrol(client, staff, photo_of(1), person_id="ada").status_code == 201
        own_server.stop()
        try:
            for answer in (identify(client, staff, 1), enrol(client, staff, photo_of(2)), client.get(staff)):
                expect(answer, 503, "store_unavailable")
                assert int(answer.headers["Retry-After"]) > 0
                assert "postgres" not in answer.json()["detail"].lower()
            compared = client.post("/v1/verify", files={"probe": photo_of(1), "reference": photo_of(1)})
            assert compared.json()["same_person"]
            assert "sameface_requests_total" in client.get("/metrics").text
        finally:
            own_server.start()
        [found] = identify(client, staff, 1).json()["results"]
        assert found["match"]["person_id"] == "ada"


def test_what_was_acknowledged_between_restarts_is_there(
    serve: Serve, home: dict[str, object], own_server: PostgresServer
) -> None:
    acknowledged: list[str] = []
    done = threading.Event()

    with serve(**home) as client:
        staff = make_collection(client)

        def enrol_on(thread: int) -> None:
            number = 0
            while not done.is_set():
                person_id, number = f"p{thread}-{number}", number + 1
                answer = enrol(client, staff, photo_of(number % 50), person_id=person_id)
                assert answer.status_code in (201, 503), answer.text
                if answer.status_code == 201:
                    acknowledged.append(person_id)

        with ThreadPoolExecutor(4) as clients:
            running = [clients.submit(enrol_on, thread) for thread in range(4)]
            for _ in range(3):
                before = len(acknowledged)
                wait_for(lambda before=before: len(acknowledged) > before + 10)
                own_server.stop()
                own_server.start()
            done.set()
            for each in running:
                each.result()
        there = {person["person_id"] for person in client.get(f"{staff}/people?limit=1000").json()["items"]}
        assert set(acknowledged) <= there
    assert check_gallery(SharedGallery(str(home["database"]), home["data"] / "shared")) == []


def test_a_server_that_starts_first_waits_for_its_database(
    serve: Serve, home: dict[str, object], own_server: PostgresServer
) -> None:
    own_server.stop()
    try:
        with serve(wait_until_ready=False, **home) as client:
            expect(client.get("/health/ready"), 503, "not_ready")
            own_server.start()
            wait_for(lambda: client.get("/health/ready").status_code == 200)
            make_collection(client)
    finally:
        own_server.start()
