"""/v1/keys: keys are made, rotated and revoked while the server runs."""

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from tests.api.collections import enrol
from tests.api.keys import add_key, bearer, make_key, store_of
from tests.api.problems import expect
from tests.conftest import Serve, wait_for
from tests.pictures import photo_of

ADMIN, ENTRY = make_key("read+write")
ALL = ["read", "search", "write", "admin"]


@pytest.fixture
def guarded(serve: Serve, tmp_path: Path):
    """A server with one key of the environment, which the client sends."""
    with serve(data=tmp_path, api_keys=ENTRY) as client:
        client.headers.update(bearer(ADMIN))
        yield client


def make(client: httpx.Client, *scopes: str, **fields: object) -> dict:
    answer = client.post("/v1/keys", json={"name": "test", "scopes": scopes, **fields})
    assert answer.status_code == 201, answer.text
    assert answer.headers["cache-control"] == "no-store"
    return answer.json()


def test_a_key_is_made_shown_listed_and_revoked(guarded: httpx.Client) -> None:
    made = make(guarded, "read", collections=["a", "b-*"], limits={"photos_per_minute": 60})
    assert guarded.get("/v1/models", headers=bearer(made["secret"])).status_code == 200
    shown = guarded.get(f"/v1/keys/{made['key_id']}").json()
    assert "secret" not in shown
    assert shown == {name: value for name, value in made.items() if name != "secret"}
    assert shown["limits"]["photos_per_minute"] == 60
    listed = guarded.get("/v1/keys").json()
    assert (listed["items"], listed["next_cursor"]) == ([shown], None)
    assert guarded.delete(f"/v1/keys/{made['key_id']}").status_code == 204
    refused = guarded.get("/v1/models", headers=bearer(made["secret"]))
    assert "revoked" in expect(refused, 401, "unauthorized")["detail"]
    assert guarded.get(f"/v1/keys/{made['key_id']}").json()["revoked_at"]
    assert guarded.delete(f"/v1/keys/{made['key_id']}").status_code == 204  # again
    expect(guarded.post(f"/v1/keys/{made['key_id']}/rotate"), 404, "key_not_found")


@pytest.mark.parametrize("header", ["Authorization", "X-Api-Key", "Api-Key"])
def test_a_key_is_sent_in_one_of_three_headers(guarded: httpx.Client, header: str) -> None:
    del guarded.headers["Authorization"]
    expect(guarded.get("/v1/models"), 401, "unauthorized")
    value = f"Bearer {ADMIN}" if header == "Authorization" else ADMIN
    assert guarded.get("/v1/models", headers={header: value}).status_code == 200
    beside = {"Authorization": "Basic YTpi", "X-Api-Key": ADMIN}  # of a proxy
    assert guarded.get("/v1/models", headers=beside).status_code == 200


def test_a_rotated_secret_works_for_its_grace(guarded: httpx.Client) -> None:
    first = make(guarded, "read")
    address = f"/v1/keys/{first['key_id']}/rotate"
    second = guarded.post(address, json={"grace_seconds": 60}).json()
    assert second["key_id"] == first["key_id"]
    for secret in (first["secret"], second["secret"]):
        assert guarded.get("/v1/models", headers=bearer(secret)).status_code == 200
    third = guarded.post(address, json={"grace_seconds": 0}).json()
    for secret in (first["secret"], second["secret"]):
        expect(guarded.get("/v1/models", headers=bearer(secret)), 401, "unauthorized")
    assert guarded.get("/v1/models", headers=bearer(third["secret"])).status_code == 200
    expect(guarded.post(address, json={"grace_seconds": -1}), 422, "invalid_request")


def test_a_key_expires(guarded: httpx.Client) -> None:
    soon = datetime.now(UTC) + timedelta(seconds=0.5)
    made = make(guarded, "read", expires_at=soon.isoformat())
    time.sleep(0.6)
    refused = guarded.get("/v1/models", headers=bearer(made["secret"]))
    assert "expired" in expect(refused, 401, "unauthorized")["detail"]


@pytest.mark.parametrize(
    "fields",
    [
        {"scopes": []},
        {"scopes": ["everything"]},
        {"name": ""},
        {"collections": []},
        {"collections": ["a b"]},
        {"collections": ["a*b"]},
        {"collections": [".."]},
        {"limits": {"photos_per_minute": 0}},
        {"limits": {"faces": -1}},
        {"limits": {"likes": 1}},
        {"expires_at": "2020-01-01T00:00:00Z"},
        {"expires_at": "2030-01-01T00:00:00"},
        {"expires_at": "+99999-01-01T00:00:00Z"},
        {"secret": "mine"},
    ],
)
def test_a_key_that_makes_no_sense_is_refused(guarded: httpx.Client, fields: dict) -> None:
    body = {"name": "test", "scopes": ["read"], **fields}
    expect(guarded.post("/v1/keys", json=body), 422, "invalid_request")
    assert guarded.get("/v1/keys").json()["items"] == []


def test_a_key_makes_and_manages_only_keys_within_its_own(guarded: httpx.Client) -> None:
    other = make(guarded, "write", collections=["acme-1"])
    boss = make(guarded, "search", "admin", collections=["acme-*"])
    guarded.headers.update(bearer(boss["secret"]))
    for fields in (
        {"scopes": ["write"], "collections": ["acme-1"]},
        {"scopes": ["search"]},
        {"scopes": ["search"], "collections": ["*"]},
        {"scopes": ["search"], "collections": ["acme-1", "staff"]},
        {"scopes": ["search"], "collections": ["acme*"]},
    ):
        expect(guarded.post("/v1/keys", json={"name": "wide", **fields}), 403, "forbidden")
    within = make(guarded, "search", collections=["acme-1", "acme-2*"])
    assert {key["key_id"] for key in guarded.get("/v1/keys").json()["items"]} == {
        boss["key_id"],
        within["key_id"],
    }
    address = f"/v1/keys/{other['key_id']}"
    for answer in (guarded.get(address), guarded.delete(address), guarded.post(f"{address}/rotate")):
        expect(answer, 404, "key_not_found")
    assert guarded.post(f"/v1/keys/{within['key_id']}/rotate").status_code == 200


def test_keys_are_listed_in_pages(guarded: httpx.Client) -> None:
    made = {make(guarded, "read")["key_id"] for _ in range(3)}
    first = guarded.get("/v1/keys", params={"limit": 2}).json()
    second = guarded.get("/v1/keys", params={"limit": 2, "cursor": first["next_cursor"]}).json()
    assert {key["key_id"] for key in first["items"] + second["items"]} == made
    assert second["next_cursor"] is None


def test_a_caller_learns_what_it_may_do(guarded: httpx.Client) -> None:
    made = make(guarded, "write", collections=["staff"])
    own = guarded.get("/v1/keys/self", headers=bearer(made["secret"])).json()
    assert (own["key_id"], own["scopes"], own["collections"]) == (made["key_id"], ["write"], ["staff"])
    own = guarded.get("/v1/keys/self").json()
    assert own["key_id"].startswith("environment-")
    assert (own["scopes"], own["created_at"]) == (ALL, None)


def test_without_keys_anybody_may_do_everything(client: httpx.Client) -> None:
    own = client.get("/v1/keys/self").json()
    assert (own["key_id"], own["scopes"], own["collections"]) == ("anonymous", ALL, None)


def test_a_collection_that_a_key_may_not_see_does_not_exist(guarded: httpx.Client) -> None:
    for name in ("staff", "acme-1", "acme-2"):
        guarded.put(f"/v1/collections/{name}")
        enrol(guarded, f"/v1/collections/{name}", photo_of(1), person_id="ada")
    secret = make(guarded, *ALL, collections=["acme-*"])["secret"]
    guarded.headers.update(bearer(secret))
    assert [each["name"] for each in guarded.get("/v1/collections").json()["items"]] == ["acme-1", "acme-2"]
    answers = {name: ask_everything(guarded, name) for name in ("staff", "nothing")}
    for seen, unknown in zip(*answers.values(), strict=True):
        problem, other = expect(seen, 404, "collection_not_found"), unknown.json()
        assert problem["detail"] == other["detail"].replace("nothing", "staff")
    verified = ask_everything(guarded, "acme-1")[0]
    assert verified.json()["same_person"]
    assert guarded.put("/v1/collections/acme-3").status_code == 201


def ask_everything(client: httpx.Client, name: str) -> list[httpx.Response]:
    address, photo = f"/v1/collections/{name}", photo_of(1)
    return [
        client.post("/v1/verify", files={"probe": photo}, data={"collection": name, "person_id": "ada"}),
        client.post(f"{address}/identify", files={"image": photo}),
        client.post(f"{address}/identify/batch", files={"images": photo}),
        client.post(f"{address}/people/batch", files={"images": photo}),
        client.post(f"{address}/people", files={"images": photo}),
        client.get(f"{address}/people"),
        client.get(f"{address}/people/ada"),
        client.patch(f"{address}/people/ada", json={"name": "A"}),
        client.get(address),
    ]


def test_a_scope_is_asked_for_before_the_collection(guarded: httpx.Client) -> None:
    secret = make(guarded, "read", collections=["acme-*"])["secret"]
    for answer in ask_everything(httpx_with(guarded, secret), "staff"):
        expect(answer, 403, "forbidden")


def httpx_with(client: httpx.Client, secret: str) -> httpx.Client:
    client.headers.update(bearer(secret))
    return client


def test_verifying_two_photos_is_reading_and_against_a_person_searching(guarded: httpx.Client) -> None:
    guarded.put("/v1/collections/staff")
    enrol(guarded, "/v1/collections/staff", photo_of(1), person_id="ada")
    photos = {"probe": photo_of(1), "reference": photo_of(1, noise=1)}
    person = {"collection": "staff", "person_id": "ada"}
    for scope, two, one in (("read", 200, 403), ("search", 403, 200), ("write", 403, 403)):
        headers = bearer(make(guarded, scope)["secret"])
        assert guarded.post("/v1/verify", files=photos, headers=headers).status_code == two
        probe = {"probe": photo_of(1)}
        asked = guarded.post("/v1/verify", files=probe, data=person, headers=headers)
        assert asked.status_code == one


def test_the_first_key_closes_a_running_server_and_revoking_it_opens_nothing(
    serve: Serve, tmp_path: Path
) -> None:
    with serve(data=tmp_path) as client:
        assert client.get("/v1/models").status_code == 200
        secret, key = add_key(store_of(client), "read")
        wait_for(lambda: client.get("/v1/models").status_code == 401, seconds=2)
        assert client.get("/v1/models", headers=bearer(secret)).status_code == 200
        assert client.get("/health/live", headers={"host": "faces.example"}).status_code == 200
        store_of(client).keys.revoke(key.key_id)
        wait_for(lambda: client.get("/v1/models", headers=bearer(secret)).status_code == 401, seconds=2)
        expect(client.get("/v1/models"), 401, "unauthorized")
    with serve(data=tmp_path) as client:
        expect(client.get("/v1/models"), 401, "unauthorized")


def test_anybody_may_make_the_first_key_of_an_open_server(serve: Serve, tmp_path: Path) -> None:
    with serve(data=tmp_path) as client:
        made = make(client, *ALL)
        expect(client.get("/v1/models"), 401, "unauthorized")
        assert client.get("/v1/models", headers=bearer(made["secret"])).status_code == 200


def test_the_last_use_of_a_key_is_known_to_the_hour(serve: Serve, tmp_path: Path) -> None:
    with serve(data=tmp_path, api_keys=ENTRY) as client:
        client.headers.update(bearer(ADMIN))
        made = make(client, "read")
        client.get("/v1/models", headers=bearer(made["secret"]))
        assert client.get(f"/v1/keys/{made['key_id']}").json()["last_used_at"] is None
    with serve(data=tmp_path, api_keys=ENTRY) as client:
        client.headers.update(bearer(ADMIN))
        used = datetime.fromisoformat(client.get(f"/v1/keys/{made['key_id']}").json()["last_used_at"])
    assert timedelta() <= datetime.now(UTC) - used < timedelta(hours=1, minutes=1)
    assert (used.minute, used.second) == (0, 0)
