"""Every error has CompreFace's shape, and none is an internal one."""

import time
import uuid
from collections.abc import Iterator

import httpx
import pytest

from sameface.api.compreface.errors import ANSWERS
from sameface.api.errors import PROBLEMS
from tests.api.compreface.conftest import Service, open_service
from tests.api.keys import add_key, bearer, store_of
from tests.api.problems import expect as expect_problem
from tests.conftest import Serve
from tests.pictures import photo_of

PHOTO = ("a.png", photo_of(1))


def expect(answer: httpx.Response, status: int, code: int) -> None:
    assert (answer.status_code, answer.json().get("code")) == (status, code), answer.text
    assert answer.json().keys() == {"message", "code"}
    assert answer.headers["content-type"] == "application/json"


def test_every_problem_has_an_answer() -> None:
    assert ANSWERS.keys() == PROBLEMS.keys()


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({}, 400, 20),
        ({"x-api-key": "secret"}, 400, 26),
        ({"x-api-key": str(uuid.uuid4())}, 404, 10),
    ],
)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/recognition/subjects"),
        ("POST", "/recognition/recognize"),
        ("POST", "/detection/detect"),
        ("POST", "/verification/verify"),
    ],
)
def test_a_key_is_needed_on_loopback_too(
    recognition: Service, method: str, path: str, headers: dict, status: int, code: int
) -> None:
    expect(recognition.call(method, path, headers=headers), status, code)


def test_a_key_is_for_its_service_alone(recognition: Service, detection: Service) -> None:
    photo = {"file": PHOTO}
    expect(recognition.call("POST", "/detection/detect", files=photo), 404, 10)
    expect(detection.call("POST", "/recognition/recognize", files=photo), 404, 10)
    native = recognition.client.get("/v1/models", headers=bearer(recognition.secret))
    expect_problem(native, 401, "unauthorized")
    secret, _ = add_key(store_of(recognition.client), "search")
    recognition.client.app.state.keys.expect_change()
    expect(recognition.call("GET", "/recognition/subjects", headers={"x-api-key": secret}), 400, 26)


def test_a_key_needs_the_scope(compatible: httpx.Client) -> None:
    reader = open_service(compatible, scopes=("search",))
    assert reader.call("GET", "/recognition/subjects").status_code == 200
    expect(reader.call("POST", "/recognition/subjects", json={"subject": "ada"}), 403, 0)
    expect(reader.call("DELETE", "/recognition/subjects"), 403, 0)


@pytest.mark.parametrize(
    ("content", "status", "code"),
    [
        (b"this is no photo", 400, 21),
        (photo_of(1)[:500], 400, 28),
        (photo_of(), 400, 28),
        (photo_of(1, 2), 400, 31),
        (b"", 400, 34),
        (b"\xff\xd8\xff" + bytes(10_000_001), 413, 0),
    ],
    ids=["text", "broken", "nobody", "two", "empty", "large"],
)
def test_bad_photos_are_refused(recognition: Service, content: bytes, status: int, code: int) -> None:
    path = "/recognition/faces?subject=ada"
    expect(recognition.call("POST", path, files={"file": ("a.jpg", content)}), status, code)
    assert recognition.call("GET", "/recognition/subjects").json() == {"subjects": []}


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/recognition/recognize?limit=-1", 400, 26),
        ("/recognition/recognize?limit=many", 400, 26),
        ("/recognition/recognize?prediction_count=0", 400, 12),
        ("/recognition/recognize?det_prob_threshold=2", 400, 26),
        ("/recognition/recognize?status=perhaps", 400, 26),
        ("/recognition/faces", 400, 33),
        ("/recognition/faces?subject=", 400, 5),
        ("/recognition/faces?subject=a%2Fb", 400, 36),
        ("/recognition/faces/nothing/verify", 404, 44),
        ("/recognition/nothing", 404, 0),
        ("/nothing", 404, 0),
        ("/migrate", 404, 0),
    ],
)
def test_bad_options_and_unknown_routes_are_refused(
    recognition: Service, path: str, status: int, code: int
) -> None:
    expect(recognition.call("POST", path, files={"file": PHOTO}), status, code)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"content": b"nonsense"}, 34),
        ({"files": {"photo": PHOTO}}, 34),
        ({"json": {}}, 34),
        ({"json": {"file": "?"}}, 21),
        ({"json": {"file": 3}}, 21),
        ({"json": [1]}, 34),
        ({"content": b"{", "headers": {"content-type": "application/json"}}, 26),
    ],
)
def test_bad_bodies_are_refused(recognition: Service, body: dict, code: int) -> None:
    headers = {"x-api-key": recognition.secret} | body.pop("headers", {})
    expect(recognition.call("POST", "/recognition/recognize", headers=headers, **body), 400, code)


def test_a_deleted_collection_is_a_service_that_is_gone(recognition: Service) -> None:
    recognition.client.app.state.gallery.delete_collection(recognition.collection)
    expect(recognition.call("GET", "/recognition/subjects"), 404, 10)


def test_what_takes_too_long_has_the_same_shape(serve: Serve, tmp_path) -> None:
    with serve(data=tmp_path, compatible="compreface", request_seconds=0.3) as client:
        service = open_service(client)

        def drip() -> Iterator[bytes]:
            yield b"{"
            time.sleep(1)
            yield b"}"

        headers = {"x-api-key": service.secret, "content-type": "application/json"}
        expect(service.call("POST", "/recognition/recognize", headers=headers, content=drip()), 503, 0)


def test_families_are_off_unless_they_are_switched_on(client: httpx.Client) -> None:
    expect_problem(client.get("/api/v1/recognition/subjects"), 404, "not_found")
    expect_problem(client.post("/v1/vision/face/recognize"), 404, "not_found")


def test_no_family_is_in_the_contract(compatible: httpx.Client) -> None:
    assert not [path for path in compatible.get("/openapi.json").json()["paths"] if "/api/v1" in path]
