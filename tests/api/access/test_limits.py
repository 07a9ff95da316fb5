"""Limits over HTTP: who asks for too much is told when to come back, and nobody else notices."""

import json
import re
from pathlib import Path

import httpx
import pytest

from sameface.model.store.access.api_key import KeyLimits
from sameface.model.store.access.leases import SPAN_SECONDS
from tests.api.collections import enrol
from tests.api.keys import add_key, bearer, store_of
from tests.api.problems import expect
from tests.conftest import Serve
from tests.model.people import random_units
from tests.networks import DIMENSION
from tests.pictures import photo_of
from tests.postgres_server import ON_POSTGRES

ALL = ("read", "search", "write", "admin")


@pytest.fixture
def limited(serve: Serve, tmp_path: Path):
    """Starts a server, and returns a client whose key has these limits."""
    with serve(data=tmp_path) as client:

        def start(**limits: int) -> httpx.Client:
            secret, _ = add_key(store_of(client), *ALL, limits=KeyLimits(**limits))
            client.app.state.keys.expect_change()
            client.headers.update(bearer(secret))
            return client

        yield start


def test_requests_a_minute(limited) -> None:
    client = limited(requests_per_minute=2)
    first, second = client.get("/v1/models"), client.get("/v1/models")
    assert first.headers["ratelimit-policy"] == '"requests";q=2;w=60'
    assert re.fullmatch(r'"requests";r=1;t=6[01]', first.headers["ratelimit"])
    assert second.headers["ratelimit"].startswith('"requests";r=0;')
    refused = client.get("/v1/models")
    problem = expect(refused, 429, "rate_limited")
    assert problem["limit"] == 2
    assert refused.headers["ratelimit"].startswith('"requests";r=0;')
    assert refused.headers["retry-after"] == str(problem["retry_after_seconds"])
    assert 55 <= problem["retry_after_seconds"] <= (SPAN_SECONDS if ON_POSTGRES else 61)
    other, _ = add_key(store_of(client), "read")
    client.app.state.keys.expect_change()
    free = client.get("/v1/models", headers=bearer(other))
    assert free.status_code == 200
    assert "ratelimit" not in free.headers


def test_photos_a_minute_are_counted_by_photo_and_embeddings_are_none(limited) -> None:
    client = limited(photos_per_minute=4)
    client.put("/v1/collections/staff")
    verified = client.post("/v1/verify", files={"probe": photo_of(1), "reference": photo_of(1)})
    assert verified.headers["ratelimit-policy"] == '"photos";q=4;qu="photos";w=60'
    assert verified.headers["ratelimit"].startswith('"photos";r=2;')
    refused = enrol(client, "/v1/collections/staff", photo_of(1), photo_of(2), photo_of(3))
    assert expect(refused, 429, "rate_limited")["limit"] == 4
    assert enrol(client, "/v1/collections/staff", photo_of(1), photo_of(2)).status_code == 201
    expect(client.post("/v1/detect", files={"image": photo_of(1)}), 429, "rate_limited")
    [embedding] = random_units(1, DIMENSION, 1)
    probe = {"embedding": embedding.tolist()}
    assert client.post("/v1/collections/staff/identify", json=probe).status_code == 200
    assert client.get("/v1/collections/staff").status_code == 200


def test_who_may_send_no_photo_is_refused_before_the_upload(limited) -> None:
    client = limited(photos_per_minute=1)
    assert client.post("/v1/detect", files={"image": photo_of(1)}).status_code == 200
    form = {"Content-Type": "multipart/form-data; boundary=x"}
    refused = client.post("/v1/detect", content=b"nothing that could be read", headers=form)
    expect(refused, 429, "rate_limited")


def test_the_lines_of_a_batch_beyond_the_limit_fail_alone(limited) -> None:
    client = limited(photos_per_minute=2)
    client.put("/v1/collections/staff")
    files = [("images", (f"{number}.jpg", photo_of(number))) for number in range(1, 5)]
    answer = client.post("/v1/collections/staff/people/batch", files=files)
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert ["error" in line for line in lines] == [False, False, True, True]
    assert {line["error"]["code"] for line in lines[2:]} == {"rate_limited"}


def test_requests_at_once_are_given_back_however_they_end(limited) -> None:
    client = limited(concurrent=1)
    for _ in range(3):
        assert client.get("/v1/models").status_code == 200
        expect(client.get("/v1/nothing"), 404, "not_found")
        expect(client.post("/v1/detect", json={}), 422, "invalid_request")
    allowance = client.app.state.limits.allowance_of(client.app.state.keys.store.keys.page()[0]).enter()
    assert "at once" in expect(client.get("/v1/models"), 429, "rate_limited")["detail"]
    allowance.leave()
    answer = client.get("/v1/models")
    assert answer.headers["ratelimit-policy"] == '"concurrent";q=1;qu="concurrent-requests"'
    assert answer.headers["ratelimit"] == '"concurrent";r=0'


def test_a_key_enrols_as_many_faces_as_it_may(limited) -> None:
    client = limited(faces=2)
    client.put("/v1/collections/staff")
    address = "/v1/collections/staff"
    assert enrol(client, address, photo_of(1), person_id="ada").status_code == 201
    refused = enrol(client, address, photo_of(2), photo_of(3), person_id="bob")
    assert "retry-after" not in refused.headers
    assert expect(refused, 429, "rate_limited")["limit"] == 2
    assert client.get(address).json()["people"] == 1
    assert enrol(client, address, photo_of(2), person_id="bob").status_code == 201
    client.delete(f"{address}/people/ada")
    assert enrol(client, address, photo_of(1), person_id="ada").status_code == 201


def test_the_faces_of_a_key_are_those_in_its_own_collections(serve: Serve, tmp_path: Path) -> None:
    with serve(data=tmp_path) as client:
        for name in ("acme-1", "acme-2", "staff"):
            client.put(f"/v1/collections/{name}")
            enrol(client, f"/v1/collections/{name}", photo_of(1))
        secret, _ = add_key(store_of(client), *ALL, collections=["acme-*"], limits=KeyLimits(faces=3))
        client.app.state.keys.expect_change()
        client.headers.update(bearer(secret))
        assert enrol(client, "/v1/collections/acme-1", photo_of(2)).status_code == 201
        expect(enrol(client, "/v1/collections/acme-2", photo_of(2)), 429, "rate_limited")


def test_limits_of_all_callers_are_settings(serve: Serve, tmp_path: Path) -> None:
    settings = {"gallery_collections": 1, "gallery_faces": 1, "photos_per_minute": 3}
    with serve(data=tmp_path, **settings) as client:
        assert client.put("/v1/collections/a").status_code == 201
        assert client.put("/v1/collections/a").status_code == 200
        expect(client.put("/v1/collections/b"), 429, "rate_limited")
        assert enrol(client, "/v1/collections/a", photo_of(1)).status_code == 201
        expect(enrol(client, "/v1/collections/a", photo_of(2)), 429, "rate_limited")
        answer = client.post("/v1/detect", files={"image": photo_of(1)})
        assert answer.headers["ratelimit"].startswith('"all-photos";r=0;')
        refused = expect(client.post("/v1/detect", files={"image": photo_of(1)}), 429, "rate_limited")
        assert refused["detail"].startswith("All callers")
        assert client.get("/health/live").status_code == 200
