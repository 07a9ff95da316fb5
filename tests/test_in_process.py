"""`sameface.open()`: what only it does, or does in its own way; the rest is in tests/faces."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import sameface
from sameface.model.bundles.bundle import load_bundle
from sameface.model.runtime.precision.choice import Precision
from tests.api.collections import enrol as enroll_over_http
from tests.networks import build_recogniser
from tests.pictures import photo_of


@pytest.fixture
def faces(data: Path, tmp_path: Path) -> Iterator[sameface.Faces]:
    """A data folder of its own, with the tiny networks by folder."""
    models = data / "models"
    with sameface.open(tmp_path, recognizer=models / "recogniser", detector=models / "detector") as faces:
        yield faces


def test_many_photos_wait_for_each_other(faces: sameface.Faces) -> None:
    enrolled = faces.collection("staff").enroll("ada", [photo_of(1, noise=n) for n in range(1, 60)])
    assert len(enrolled.faces) == 59


def test_opening_and_verifying_calls_nobody_and_leaves_nothing_at_home(data: Path, tmp_path: Path) -> None:
    """As they come, OpenVINO tells Google and ONNX Runtime tells Microsoft, each with an id kept at home."""
    script = """
import sys
calls = []
watched = ("socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.posix_spawn")
sys.addaudithook(lambda name, given: name in watched and calls.append((name, given)))
import sameface
home, recognizer, detector, photo = sys.argv[1:]
with sameface.open(home + "/data", recognizer=recognizer, detector=detector) as faces:
    assert faces.verify(photo, photo).same_person
print(calls)
"""
    (tmp_path / "photo").write_bytes(photo_of(1))
    home, models = tmp_path / "home", data / "models"
    home.mkdir()
    words = [home, models / "recogniser", models / "detector", tmp_path / "photo"]
    silencing = ("CI", "ORT_DISABLE_TELEMETRY")
    environment = {name: value for name, value in os.environ.items() if name not in silencing}
    environment["HOME"] = str(home)
    said = subprocess.run(
        [sys.executable, "-c", script, *words], env=environment, check=True, capture_output=True, text=True
    )
    assert said.stdout == "[]\n"
    assert [path.name for path in home.iterdir()] == ["data"]


def test_a_precision_is_proved_on_the_faces_that_were_given(tmp_path: Path) -> None:
    with sameface.open(tmp_path, precision="bf16", precision_faces="~/own") as faces:
        assert faces.engine.options.precision == Precision("bf16", Path("~/own").expanduser())
    with sameface.open(tmp_path) as faces:
        assert faces.engine.options.precision == Precision("auto", None)


def test_answers_have_the_names_and_the_shape_of_the_http_api(
    faces: sameface.Faces, client: httpx.Client, staff: str
) -> None:
    photos = {"probe": photo_of(1), "reference": photo_of(1, noise=3)}
    over_http = client.post("/v1/verify", files=photos).json()
    here = json.loads(json.dumps(faces.verify(*photos.values()).to_dict()))
    assert {**here, "timings_ms": {}} == {**over_http, "timings_ms": {}}
    for route, answer in (("detect", faces.detect(photo_of(1, 2))), ("embed", faces.embed(photo_of(1, 2)))):
        over_http = client.post(f"/v1/{route}", files={"image": photo_of(1, 2)}).json()
        here = json.loads(json.dumps(answer.to_dict()))
        assert {**here, "timings_ms": {}} == {**over_http, "timings_ms": {}}
    over_http = enroll_over_http(client, staff, photo_of(1), photo_of(), person_id="ada", name="Ada").json()
    mine = faces.collection("staff")
    here = mine.enroll("ada", [photo_of(1), photo_of()], name="Ada").to_dict()
    assert shape_of(here) == shape_of(over_http)
    over_http = client.post(f"{staff}/identify", files={"image": photo_of(1, 2)}).json()
    assert shape_of(mine.identify(photo_of(1, 2)).to_dict()) == shape_of(over_http)


def shape_of(value: object) -> object:
    """The keys at every depth, and the types of the values."""
    if isinstance(value, dict):
        return {key: shape_of(item) for key, item in value.items() if key != "timings_ms"}
    return [shape_of(item) for item in value] if isinstance(value, list) else type(value)


def test_a_bundle_is_found_by_its_name_in_the_data_folder(data: Path) -> None:
    with sameface.open(data, recognizer="recogniser", detector="detector") as faces:
        expected = load_bundle(data / "models" / "recogniser").contract.name
        assert faces.embed(photo_of(1)).model == expected


def test_a_collection_says_how_it_is_searched_before_the_networks_are_loaded_and_after(
    faces: sameface.Faces, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    staff = faces.collection("staff")
    staff.enroll("ada", [photo_of(1)])
    assert [staff.describe().index, *(each.index for each in faces.collections())] == ["exact", "exact"]
    monkeypatch.setattr(faces.engine.gallery.indexes, "kind_of", lambda _: "exact on gpu")
    assert staff.describe().index == faces.collections()[0].index == "exact on gpu"
    models = data / "models"
    with sameface.open(
        tmp_path,
        recognizer=models / "recogniser",
        detector=models / "detector",
        milvus_uri="http://127.0.0.1:1",
    ) as others:
        assert others.collection("staff").describe().index == others.collections()[0].index == "milvus"


def test_people_of_another_recogniser_can_be_listed_and_forgotten(
    faces: sameface.Faces, data: Path, tmp_path: Path
) -> None:
    faces.collection("staff").enroll("ada", [photo_of(1)])
    (tmp_path / "other").mkdir()
    build_recogniser(tmp_path / "other", name="other", seed=5)
    detector = data / "models" / "detector"
    with sameface.open(tmp_path, recognizer=tmp_path / "other", detector=detector) as others:
        staff = others.collection("staff")
        with pytest.raises(sameface.SamefaceError) as failure:
            staff.identify(photo_of(1))
        assert failure.value.code == "model_mismatch"
        assert [person.person_id for person in staff.people()] == ["ada"]
        staff.forget("ada")
    assert list(faces.collection("staff").people()) == []


def test_comparing_photos_leaves_no_gallery_behind(faces: sameface.Faces, tmp_path: Path) -> None:
    faces.verify(photo_of(1), photo_of(1))
    assert not (tmp_path / "gallery.db").exists()


def test_importing_it_loads_no_engine_and_shows_the_public_names() -> None:
    script = (
        "import sys, sameface; heavy = {'onnxruntime', 'torch', 'numpy', 'PIL', 'faiss', 'fastapi'};"
        "print(sorted(heavy & set(sys.modules)), sameface.__version__, len(dir(sameface)));"
        "assert all(hasattr(sameface, name) for name in sameface.__all__)"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert said.startswith("[] 0.")


def test_changes_are_in_the_audit_of_the_caller_local(faces: sameface.Faces) -> None:
    staff = faces.collection("staff")
    staff.enroll("ada", [photo_of(1)], name="Ada")
    staff.identify(photo_of(1))  # a decision in process is the caller's own
    staff.forget("ada")
    assert [(entry.action, entry.caller) for entry in faces.audit(collection="staff")] == [
        ("forget_person", "local"),
        ("enroll_person", "local"),
        ("create_collection", "local"),
    ]
