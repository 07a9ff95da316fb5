"""Who calls is known to all that is done for a request."""

import os
from pathlib import Path

import pytest

from sameface.model.access.limits import counters
from sameface.model.actor import Actor, current_actor
from sameface.model.store.access.api_key import KeyLimits
from tests.api.collections import enrol
from tests.api.keys import add_key, bearer, make_key, store_of
from tests.api.problems import expect
from tests.conftest import Serve
from tests.pictures import photo_of

ALL = ("read", "search", "write", "admin")


@pytest.fixture
def watched(serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A server with a collection, and whoever acted when its store enrolled or was read."""
    seen: list[Actor] = []
    with serve(data=tmp_path) as client:
        client.put("/v1/collections/staff")
        people = store_of(client).people
        for name in ("enroll", "page"):
            method = getattr(people, name)

            def watch(*arguments, method=method, **named):
                seen.append(current_actor())
                return method(*arguments, **named)

            monkeypatch.setattr(people, name, watch)
        yield client, seen


def test_without_keys_the_caller_is_anonymous(watched) -> None:
    client, seen = watched
    client.get("/v1/collections/staff/people", headers={"X-Request-ID": "mine"})
    assert seen == [Actor("anonymous", "mine", "/v1/collections/{collection}/people")]
    assert current_actor() == Actor()


def test_with_keys_the_caller_is_the_key_also_in_a_batch(watched) -> None:
    client, seen = watched
    secret, key = add_key(store_of(client), *ALL)
    client.app.state.keys.expect_change()
    client.headers.update(bearer(secret))
    enrol(client, "/v1/collections/staff", photo_of(1))
    client.post("/v1/collections/staff/people/batch", files={"images": photo_of(2)})
    assert {actor.caller for actor in seen} == {key.key_id}
    assert [actor.route for actor in seen] == [
        "/v1/collections/{collection}/people",
        "/v1/collections/{collection}/people/batch",
    ]


@pytest.mark.parametrize("prefix", ["", "/faces"])
def test_a_prefix_of_a_proxy_opens_no_way_around_the_key(serve: Serve, tmp_path: Path, prefix: str) -> None:
    secret, entry = make_key("read")
    with serve(data=tmp_path, api_keys=entry, root_path=prefix) as client:
        expect(client.get(f"{prefix}/v1/models"), 401, "unauthorized")
        assert client.get(f"{prefix}/v1/models", headers=bearer(secret)).status_code == 200


def test_where_nothing_can_be_counted_nobody_with_limits_is_let_in(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    with serve(data=tmp_path) as client:
        monkeypatch.setattr(counters.os, "posix_fallocate", refuse)
        limited, _ = add_key(store_of(client), "read", limits=KeyLimits(concurrent=1))
        free, _ = add_key(store_of(client), "read")
        client.app.state.keys.expect_change()
        expect(client.get("/v1/models", headers=bearer(limited)), 507, "storage_full")
        assert client.get("/v1/models", headers=bearer(free)).status_code == 200
