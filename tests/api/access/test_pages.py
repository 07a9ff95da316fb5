"""/metrics, /docs and /openapi.json: each public, behind a key, or off."""

import httpx
import pytest

from tests.api.keys import make_key
from tests.api.problems import expect

PAGES = {"metrics": "/metrics", "docs": "/docs", "openapi": "/openapi.json"}


@pytest.fixture(scope="module")
def keys() -> dict[str, tuple[str, str]]:
    return {scope: make_key(scope) for scope in ("read", "write")}


def ask(client: httpx.Client, path: str, secret: str | None = None) -> httpx.Response:
    return client.get(path, headers={"Authorization": f"Bearer {secret}"} if secret else {})


def test_all_are_public_unless_said_otherwise(serve, keys) -> None:
    with serve(api_keys=keys["read"][1]) as client:
        for path in PAGES.values():
            assert ask(client, path).status_code == 200


def test_behind_a_key_they_need_one_and_metrics_take_any(serve, keys) -> None:
    entries = ",".join(entry for _, entry in keys.values())
    with serve(api_keys=entries, **dict.fromkeys(PAGES, "key")) as client:
        for path in (*PAGES.values(), "/swagger/swagger-ui.css"):
            expect(ask(client, path), 401, "unauthorized")
            expect(ask(client, path, "sf_wrong"), 401, "unauthorized")
            assert ask(client, path, keys["read"][0]).status_code == 200
        assert ask(client, "/metrics", keys["write"][0]).status_code == 200
        for name in ("docs", "openapi"):
            expect(ask(client, PAGES[name], keys["write"][0]), 403, "forbidden")
        published = ask(client, "/openapi.json", keys["read"][0]).json()["paths"]
        assert published["/metrics"]["get"]["security"] == published["/v1/models"]["get"]["security"]


@pytest.mark.parametrize("name", PAGES)
def test_off_is_like_a_path_that_never_was(serve, name: str) -> None:
    with serve(**{name: "off"}) as client:
        problem = expect(client.get(PAGES[name]), 404, "not_found")
        unknown = expect(client.get("/nowhere"), 404, "not_found")
        assert problem["detail"] == unknown["detail"].replace("/nowhere", PAGES[name])
        for other in PAGES.keys() - {name}:
            assert client.get(PAGES[other]).status_code == 200
        assert client.get("/v1/collections?limit=3").status_code == 200  # known by the contract
