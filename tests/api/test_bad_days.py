"""Bad days of a gallery in PostgreSQL: slow, killed, read-only, full, and machines that differ."""

import json
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import psycopg
import pytest

from sameface.model.access.key_ring import FRESH_SECONDS
from sameface.model.data_folder import SharedGallery
from sameface.model.errors import SamefaceError, StorageFull, StoreRefused
from sameface.model.store.access.api_key import KeyLimits
from sameface.model.store.databases.postgres import postgres_connections as connections_module
from sameface.model.store.databases.postgres.postgres_errors import name_failure
from sameface.model.store.store import Store
from sameface.model.upkeep.check_gallery import check_gallery
from tests.api.collections import enrol, make_collection
from tests.api.delaying_proxy import DelayingProxy
from tests.api.keys import add_key, bearer, store_of
from tests.api.problems import expect
from tests.conftest import Serve, wait_for
from tests.model.people import random_units
from tests.networks import DIMENSION, build_recogniser
from tests.pictures import photo_of
from tests.postgres_server import ON_POSTGRES, PostgresServer

pytestmark = pytest.mark.skipif(not ON_POSTGRES, reason="`make postgres` has a server")


@pytest.fixture
def machine(data: Path, own_server: PostgresServer, tmp_path: Path):
    """The settings of a machine, with a data folder of its own, of one gallery."""
    models = {"recognizer": data / "models" / "recogniser", "detector": data / "models" / "detector"}
    url = own_server.url_of(tmp_path)
    return lambda name, **others: {"data": tmp_path / name, "database": url, **models, **others}


@pytest.fixture
def proxy(own_server: PostgresServer) -> Iterator[DelayingProxy]:
    socket = Path(own_server.server.get_postmaster_info().socket_dir) / ".s.PGSQL.5432"
    proxy = DelayingProxy(socket)
    yield proxy
    proxy.close()


def through(proxy: DelayingProxy, url: str) -> str:
    """The URL of the same database by way of a proxy."""
    options = url.partition("&options=")[2]
    return f"postgresql://postgres@127.0.0.1:{proxy.port}/postgres?options={options}"


def found(client: httpx.Client, staff: str, number: int) -> str | None:
    [result] = client.post(f"{staff}/identify", files={"image": photo_of(number)}).json()["results"]
    return result["match"] and result["match"]["person_id"]


def test_a_slow_network_makes_answers_slow_and_one_too_slow_is_told(
    serve: Serve, machine, proxy: DelayingProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = machine("one")
    home["database"] = through(proxy, home["database"])
    monkeypatch.setitem(connections_module.DEFAULTS, "connect_timeout", 2)
    with serve(**home) as client:
        staff = make_collection(client)
        proxy.delay_seconds = 0.02
        assert enrol(client, staff, photo_of(1), person_id="ada").status_code == 201
        assert found(client, staff, 1) == "ada"
        proxy.delay_seconds = 3.0
        proxy.cut()
        expect(client.get(staff), 503, "store_unavailable")
        proxy.delay_seconds = 0.0
        wait_for(lambda: client.get(staff).status_code == 200)


def test_while_a_database_does_not_answer_photos_are_compared_and_keys_are_those_of_before(
    serve: Serve, machine, proxy: DelayingProxy
) -> None:
    home = machine("one")
    direct = SharedGallery(home["database"], home["data"] / "shared")
    home["database"] = through(proxy, home["database"])
    photos = {"probe": photo_of(1), "reference": photo_of(1)}
    with serve(**home) as client:
        secret, key = add_key(store_of(client), "read", "search")
        client.app.state.keys.expect_change()

        def compare() -> httpx.Response:
            return client.post("/v1/verify", files=photos, headers=bearer(secret))

        assert compare().status_code == 200
        proxy.delay_seconds = 6.0
        time.sleep(FRESH_SECONDS)
        for most in (1.5, 0.5, 0.5):  # the first one waits a moment for the keys
            began = time.monotonic()
            assert compare().json()["same_person"]
            assert time.monotonic() - began < most
        proxy.delay_seconds = 0.0
        proxy.cut()
        wait_for(lambda: client.get("/v1/collections", headers=bearer(secret)).status_code == 200)
        with closing(Store(direct)) as store:
            store.keys.revoke(key.key_id)
        time.sleep(1.0)
        expect(compare(), 401, "unauthorized")


def test_a_batch_that_loses_its_database_in_the_middle_is_finished_by_its_retry(
    serve: Serve, machine, proxy: DelayingProxy
) -> None:
    home = machine("one")
    home["database"] = through(proxy, home["database"])
    people = random_units(1_500, DIMENSION, 9)
    lines = [
        json.dumps({"id": str(n), "person_id": f"p{n}", "embedding": row.tolist()}).encode() + b"\n"
        for n, row in enumerate(people)
    ]
    headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": "once"}

    def send_and_cut() -> Iterator[bytes]:
        for number, line in enumerate(lines):
            if number == 1_200:
                wait_for(lambda: client.get(staff).json()["people"] > 0)
                proxy.cut()
            yield line

    with serve(**home) as client:
        staff = make_collection(client)
        batch = f"{staff}/people/batch"
        first = client.post(batch, content=send_and_cut(), headers=headers)
        said = [json.loads(line) for line in first.text.splitlines()]
        assert {each["error"]["code"] for each in said if "error" in each} <= {"store_unavailable"}
        again = client.post(batch, content=b"".join(lines), headers=headers)
        assert all("error" not in json.loads(line) for line in again.text.splitlines()), again.text[:500]
        assert client.get(staff).json()["people"] == 1_500
    assert check_gallery(SharedGallery(home["database"], home["data"] / "shared")) == []


def test_a_server_that_is_killed_comes_back_with_all_that_was_acknowledged(
    serve: Serve, machine, own_server: PostgresServer
) -> None:
    with serve(**machine("one")) as client:
        staff = make_collection(client)
        for number in range(5):
            assert enrol(client, staff, photo_of(number), person_id=f"p{number}").status_code == 201
        own_server.kill()
        wait_for(lambda: client.get(staff).status_code == 503)
        own_server.start()
        wait_for(lambda: client.get(staff).status_code == 200)
        assert [found(client, staff, number) for number in range(5)] == [f"p{n}" for n in range(5)]


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("DO $$ BEGIN RAISE EXCEPTION 'secret row' USING ERRCODE = '53100'; END $$", StorageFull),
        ("SET TRANSACTION READ ONLY; CREATE TABLE secret (key int)", StoreRefused),
    ],
    ids=["full", "read-only"],
)
def test_a_disk_that_is_full_or_a_standby_is_said(
    own_server: PostgresServer, statement: str, named: type[SamefaceError]
) -> None:
    """The server's disk cannot be filled here: it is made to raise the error that it then raises."""
    with psycopg.connect(own_server.server.get_uri()) as connection, pytest.raises(psycopg.Error) as raised:
        connection.execute(statement)
    failure = name_failure(raised.value)
    assert isinstance(failure, named)
    assert "secret" not in failure.detail


def test_a_server_that_takes_no_writes_is_said_and_searches_go_on(
    serve: Serve, machine, own_server: PostgresServer
) -> None:
    def set_on_server(statement: str) -> None:
        with psycopg.connect(own_server.server.get_uri(), autocommit=True) as connection:
            connection.execute(f"ALTER SYSTEM {statement}")
            connection.execute("SELECT pg_reload_conf()")

    with serve(**machine("one")) as client:
        staff = make_collection(client)
        assert enrol(client, staff, photo_of(1), person_id="ada").status_code == 201
        set_on_server("SET default_transaction_read_only = on")
        try:
            wait_for(lambda: enrol(client, staff, photo_of(2)).status_code != 201)
            expect(enrol(client, staff, photo_of(2)), 503, "store_refused")
            expect(client.delete(f"{staff}/people/ada"), 503, "store_refused")
            assert found(client, staff, 1) == "ada"
            assert client.get(f"{staff}/people/ada").status_code == 200
        finally:
            set_on_server("RESET default_transaction_read_only")
        wait_for(lambda: client.delete(f"{staff}/people/ada").status_code == 204)


def test_a_machine_with_another_recogniser_is_refused_and_both_are_named(
    serve: Serve, machine, tmp_path: Path
) -> None:
    other = tmp_path / "other-recogniser"
    other.mkdir()
    build_recogniser(other, name="another", seed=2)
    with serve(**machine("one")) as here, serve(**machine("two", recognizer=other)) as there:
        staff = make_collection(here)
        assert enrol(here, staff, photo_of(1), person_id="ada").status_code == 201
        refused = there.post(f"{staff}/identify", files={"image": photo_of(1)})
        assert refused.json()["code"] == "model_mismatch"
        assert "another" in refused.json()["detail"]


def test_the_limits_of_a_key_hold_over_two_machines(serve: Serve, machine) -> None:
    with serve(**machine("one")) as here, serve(**machine("two")) as there:
        secret, _ = add_key(store_of(here), "read", "search", limits=KeyLimits(requests_per_minute=20))
        for client in (here, there):
            client.app.state.keys.expect_change()
        asked = [
            client.get("/v1/collections", headers=bearer(secret))
            for _ in range(15)
            for client in (here, there)
        ]
        assert 19 <= sum(answer.status_code == 200 for answer in asked) <= 20
        refused = [answer for answer in asked if answer.status_code != 200]
        expect(refused[-1], 429, "rate_limited")
        assert int(refused[-1].headers["Retry-After"]) > 0
