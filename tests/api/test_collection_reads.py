"""A request reads its collection once: it decides by the same revision as it searches."""

import base64
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

import sameface
from sameface.model.store.collections import Collections
from tests.api.collections import embedding_of, enrol, make_collection
from tests.api.compreface.conftest import open_service
from tests.api.keys import add_key, store_of
from tests.api.rekognition.conftest import open_signer
from tests.conftest import Serve
from tests.pictures import photo_of

ADA = photo_of(1)
AGAIN = photo_of(1, noise=2)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names by which collections have been read."""
    names, get = [], Collections.get

    def count(collections: Collections, name: str) -> object:
        names.append(name)
        return get(collections, name)

    monkeypatch.setattr(Collections, "get", count)
    return names


@pytest.fixture
def server(serve: Serve, tmp_path: Path) -> Iterator[httpx.Client]:
    with serve(data=tmp_path, compatible="compreface,deepstack,rekognition") as client:
        yield client


def count(reads: list[str], call: Callable[[], object]) -> int:
    """How often the collection is read while `call` works, which must succeed."""
    reads.clear()
    answer = call()
    if isinstance(answer, httpx.Response):
        assert answer.is_success, answer.text
    return len(reads)


def test_in_process(data: Path, tmp_path: Path, reads: list[str]) -> None:
    models = data / "models"
    with sameface.open(tmp_path, recognizer=models / "recogniser", detector=models / "detector") as faces:
        staff = faces.collection("staff")
        entry = sameface.EnrollEntry("1", photo_of(2), "bob")
        calls = [
            lambda: staff.enroll("ada", [ADA]),
            lambda: staff.enroll("eve", [photo_of(5)]),
            lambda: staff.enroll_or_add("ada", [AGAIN]),
            lambda: staff.add_faces("ada", [AGAIN]),
            lambda: list(staff.enroll_many([entry])),
            lambda: staff.verify("ada", AGAIN),
            lambda: staff.identify(AGAIN),
            lambda: list(staff.identify_many([("1", AGAIN)])),
        ]
        assert [count(reads, call) for call in calls] == [1] * len(calls)


def test_the_native_routes(server: httpx.Client, reads: list[str]) -> None:
    staff = make_collection(server)
    name = staff.rpartition("/")[2]
    reference = {"collection": name, "person_id": "ada"}
    calls = [
        lambda: enrol(server, staff, ADA, person_id="ada"),
        lambda: server.post(f"{staff}/people/ada/faces", files={"images": AGAIN}),
        lambda: server.post("/v1/verify", files={"probe": AGAIN}, data=reference),
        lambda: server.post(f"{staff}/identify", files={"image": AGAIN}),
    ]
    assert [count(reads, call) for call in calls] == [1] * len(calls)


def test_the_routes_of_compreface(server: httpx.Client, reads: list[str]) -> None:
    sent = {"embeddings": [embedding_of(server, AGAIN)]}  # before there are keys
    recognition, verification = open_service(server), open_service(server, "verification")
    face_id = recognition.add("ada", ADA)
    photo = {"file": ("a.png", AGAIN)}
    two = {"source_image": ("a.png", ADA), "target_image": ("a.png", AGAIN)}
    calls = [
        lambda: recognition.add("ada", AGAIN),
        lambda: recognition.call("POST", "/recognition/recognize", files=photo),
        lambda: recognition.call("POST", "/recognition/embeddings/recognize", json=sent),
        lambda: recognition.call("POST", f"/recognition/faces/{face_id}/verify", files=photo),
        lambda: verification.call("POST", "/verification/verify", files=two),
    ]
    assert [count(reads, call) for call in calls] == [1] * len(calls)


def test_the_routes_of_deepstack(server: httpx.Client, reads: list[str]) -> None:
    server.app.state.gallery.create_collection("staff")
    secret, _ = add_key(store_of(server), "search", "write", collections=["staff"])
    server.app.state.keys.expect_change()
    sent = {"files": {"image": ("a.png", ADA)}, "headers": {"x-api-key": secret}}
    calls = [
        lambda: server.post("/v1/vision/face/register", data={"userid": "ada"}, **sent),
        lambda: server.post("/v1/vision/face/recognize", **sent),
    ]
    assert [count(reads, call) for call in calls] == [1] * len(calls)


def test_the_operations_of_rekognition(server: httpx.Client, reads: list[str]) -> None:
    signer = open_signer(server)
    [face_id] = signer.index(ADA)
    photo = {"Bytes": base64.b64encode(AGAIN).decode()}
    calls = [
        lambda: signer.index(AGAIN),
        lambda: signer.ask("SearchFaces", FaceId=face_id),
        lambda: signer.ask("SearchFacesByImage", Image=photo),
        lambda: signer.ask("SearchUsersByImage", Image=photo),
    ]
    assert [count(reads, call) for call in calls] == [1] * len(calls)
