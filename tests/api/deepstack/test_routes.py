"""DeepStack's three face routes, as Double Take calls them."""

from collections.abc import Iterator

import httpx
import pytest

from tests.api.collections import NUMBERS
from tests.api.keys import add_key, store_of
from tests.conftest import Serve
from tests.pictures import photo_of

PHOTO = ("a.jpg", photo_of(1))


@pytest.fixture(scope="module")
def compatible(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with serve(data=tmp_path_factory.mktemp("deepstack"), compatible="deepstack") as client:
        yield client


@pytest.fixture
def key(compatible: httpx.Client) -> str:
    name = f"people-{next(NUMBERS)}"
    compatible.app.state.gallery.create_collection(name)
    return make_key(compatible, "search", "write", collections=[name])


def make_key(client: httpx.Client, *scopes: str, collections: list[str] | None) -> str:
    secret, _ = add_key(store_of(client), *scopes, collections=collections)
    client.app.state.keys.expect_change()
    return secret


def call(client: httpx.Client, route: str, photo: bytes | None = None, **fields: object) -> httpx.Response:
    files = {name: (None, str(value)) for name, value in fields.items()}
    return client.post(
        f"/v1/vision/face/{route}", files=files | ({"image": ("a.jpg", photo)} if photo else {})
    )


def test_people_are_registered_recognised_and_deleted(compatible: httpx.Client, key: str) -> None:
    added = call(compatible, "register", photo_of(1), userid="Ada", api_key=key)
    assert added.json() == {"success": True, "message": "face added"}
    answer = call(compatible, "recognize", photo_of(1, 7, noise=1), api_key=key).json()
    known, stranger = sorted(answer["predictions"], key=lambda each: each["x_min"])
    assert (answer["success"], known["userid"], stranger["userid"]) == (True, "Ada", "unknown")
    assert known["confidence"] >= 0.67
    assert known.keys() == {"userid", "confidence", "x_min", "y_min", "x_max", "y_max"}
    low = call(compatible, "recognize", photo_of(7), api_key=key, min_confidence=0).json()
    assert low["predictions"][0]["userid"] == "Ada"
    assert call(compatible, "delete", userid="ada", api_key=key).json() == {"success": True}
    empty = call(compatible, "recognize", photo_of(1), api_key=key).json()
    assert empty["predictions"][0]["userid"] == "unknown"


def test_the_key_may_be_in_a_header(compatible: httpx.Client, key: str) -> None:
    answer = compatible.post("/v1/vision/face/recognize", files={"image": PHOTO}, headers={"x-api-key": key})
    assert answer.json()["success"]


@pytest.mark.parametrize(
    ("route", "photo", "fields", "status"),
    [
        ("recognize", b"text", {}, 400),
        ("recognize", photo_of(1)[:500], {}, 400),
        ("recognize", photo_of(), {}, 400),
        ("recognize", None, {}, 400),
        ("recognize", photo_of(1), {"min_confidence": "high"}, 400),
        ("register", photo_of(1), {}, 400),
        ("register", photo_of(), {"userid": "ada"}, 400),
        ("delete", None, {"userid": "nobody"}, 404),
        ("recognize", b"\xff\xd8\xff" + bytes(10_000_001), {}, 413),
        ("nothing", None, {}, 404),
    ],
)
def test_bad_input_is_refused_in_deepstacks_shape(
    compatible: httpx.Client, key: str, route: str, photo: bytes | None, fields: dict, status: int
) -> None:
    answer = call(compatible, route, photo, api_key=key, **fields)
    assert answer.status_code == status, answer.text
    assert answer.json().keys() == {"success", "error"}
    assert answer.json()["success"] is False


def test_a_key_for_one_collection_is_needed(compatible: httpx.Client, key: str) -> None:
    assert key
    everywhere = make_key(compatible, "search", collections=None)
    somewhere = make_key(compatible, "search", collections=["people-*"])
    for secret in ("", "wrong", everywhere, somewhere):
        answer = call(compatible, "recognize", photo_of(1), api_key=secret)
        assert (answer.status_code, answer.json()["success"]) == (401, False)
    reader = make_key(compatible, "search", collections=["nowhere"])
    assert call(compatible, "recognize", photo_of(1), api_key=reader).status_code == 404
    assert call(compatible, "delete", userid="ada", api_key=reader).status_code == 403
