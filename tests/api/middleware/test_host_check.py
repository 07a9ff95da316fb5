"""A web page in a browser on this machine must not reach a server without keys."""

from pathlib import Path

import httpx
import pytest
from starlette.datastructures import Headers

from sameface.api.middleware.host_check import HostCheck
from sameface.api.settings import Settings
from sameface.model.access.key_ring import KeyRing
from tests.api.problems import expect
from tests.pictures import photo_of

NO_KEYS = KeyRing((), Path("nowhere"))


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "[::2]", "a b"]
)
def test_another_name_is_refused(client: httpx.Client, host: str) -> None:
    for path in ("/v1/collections", "/health/live", "/docs", "/metrics"):
        expect(client.get(path, headers={"host": host}), 421, "host_not_allowed")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8000", "127.0.0.1:1", "[::1]:8000"])
def test_the_names_of_this_machine_are_answered(client: httpx.Client, host: str) -> None:
    assert client.get("/health/live", headers={"host": host}).status_code == 200


def test_a_form_of_a_foreign_page_writes_nothing(client: httpx.Client, staff: str) -> None:
    files, foreign = {"images": photo_of(1)}, {"origin": "https://evil.example"}
    expect(client.post(f"{staff}/people", files=files, headers=foreign), 403, "forbidden")
    expect(client.delete(staff, headers={"origin": "null"}), 403, "forbidden")
    assert client.get(staff, headers=foreign).json()["people"] == 0
    own = {"origin": str(client.base_url).rstrip("/")}
    assert client.post(f"{staff}/people", files=files, headers=own).status_code == 201


def test_more_names_and_origins_may_be_allowed(serve) -> None:
    with serve(allowed_hosts="faces.test", cors_origins="https://app.test") as client:
        assert client.get("/health/live", headers={"host": "faces.test:8000"}).status_code == 200
        made = client.put("/v1/collections/any", headers={"origin": "https://app.test"})
        assert made.status_code == 201


def test_off_loopback_the_names_that_are_set_count() -> None:
    outside = {"host": "0.0.0.0", "listen_without_keys": True}
    assert not HostCheck(None, Settings(**outside), NO_KEYS).wanted
    check = HostCheck(None, Settings(**outside, allowed_hosts="faces.test"), NO_KEYS)
    assert check.wanted
    assert check.judge("GET", Headers({"host": "evil.test"}))
    assert check.judge("GET", Headers({"host": "localhost:8000"})) is None


def test_with_keys_the_key_decides(serve) -> None:
    from tests.api.keys import make_key

    _, entry = make_key("read")
    with serve(api_keys=entry) as client:
        assert client.get("/health/live", headers={"host": "faces.example"}).status_code == 200
