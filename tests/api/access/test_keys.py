"""API keys: who may do what."""

import httpx
import pytest

from tests.api.keys import make_key
from tests.api.problems import expect
from tests.pictures import photo_of


@pytest.fixture(scope="module")
def keys() -> dict[str, tuple[str, str]]:
    return {scopes: make_key(scopes) for scopes in ("read", "write", "read+write")}


@pytest.fixture(scope="module")
def guarded(serve, keys):
    with serve(api_keys=",".join(entry for _, entry in keys.values())) as client:
        yield client


def detect(client: httpx.Client, authorization: str | None) -> httpx.Response:
    headers = {"Authorization": authorization} if authorization else {}
    return client.post("/v1/detect", files={"image": photo_of(1)}, headers=headers)


@pytest.mark.parametrize("name", ["read", "read+write"])
def test_a_key_with_the_scope_passes(guarded: httpx.Client, keys, name: str) -> None:
    assert detect(guarded, f"Bearer {keys[name][0]}").status_code == 200


@pytest.mark.parametrize("authorization", [None, "Bearer sf_wrong", "Bearer", "Basic YTpi", "Bearer \u00e9"])
def test_a_missing_or_wrong_key_is_unauthorized(guarded: httpx.Client, authorization: str | None) -> None:
    headers = authorization.encode("latin-1") if authorization else None
    response = detect(guarded, headers)
    expect(response, 401, "unauthorized")
    assert response.headers["www-authenticate"] == "Bearer"


def test_a_key_without_the_scope_is_forbidden(guarded: httpx.Client, keys) -> None:
    expect(detect(guarded, f"Bearer {keys['write'][0]}"), 403, "forbidden")


def test_the_hash_of_a_key_is_not_a_key(guarded: httpx.Client, keys) -> None:
    expect(detect(guarded, f"Bearer {keys['read'][1].partition(':')[0]}"), 401, "unauthorized")


def test_a_refused_request_is_not_read(guarded: httpx.Client) -> None:
    expect(guarded.post("/v1/detect", content=b"nonsense"), 401, "unauthorized")


@pytest.mark.parametrize("path", ["/health/live", "/health/ready", "/openapi.json", "/docs"])
def test_health_and_documentation_need_no_key(guarded: httpx.Client, path: str) -> None:
    assert guarded.get(path).status_code == 200


def test_models_need_a_key(guarded: httpx.Client) -> None:
    expect(guarded.get("/v1/models"), 401, "unauthorized")
