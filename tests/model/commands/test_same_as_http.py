"""With `--json`, a command prints what the server answers to the same question."""

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from sameface.model.runtime import prepare_graph
from sameface.model.runtime.precision import lower
from sameface.model.runtime.precision.choice import Offer
from tests.conftest import Serve
from tests.model.calibrated import calibrate_bundle
from tests.networks import build_recogniser
from tests.pictures import photo_of

Ask = Callable[..., Any]


@pytest.fixture
def home(data: Path, tmp_path: Path) -> Path:
    """A data folder whose recogniser is calibrated, and photos beside it."""
    shutil.copytree(data / "models", tmp_path / "home" / "models")
    calibrate_bundle(build_recogniser(tmp_path / "home" / "models" / "recogniser"))
    for name, people in {"ada": (1,), "again": (1,), "group": (1, 9), "room": ()}.items():
        (tmp_path / f"{name}.png").write_bytes(photo_of(*people, noise=len(name)))
    (tmp_path / "people" / "ada").mkdir(parents=True)
    shutil.copy(tmp_path / "ada.png", tmp_path / "people" / "ada")
    shutil.copy(tmp_path / "room.png", tmp_path / "people" / "ada")
    return tmp_path / "home"


@pytest.fixture
def ask(run, home: Path) -> Ask:
    """What a command prints with `--json`, on that data folder."""
    places = {"DATA": home, "RECOGNIZER": "recogniser", "DETECTOR": "detector"}
    variables = {f"SAMEFACE_{name}": str(place) for name, place in places.items()}
    return lambda *words: json.loads(run(*words, "--json", **variables).stdout)


@pytest.fixture
def client(home: Path, serve: Serve) -> Iterator[httpx.Client]:
    """A client of a server on that data folder."""
    bundles = {name: home / "models" / name for name in ("recogniser", "detector")}
    with serve(
        data=home, recognizer=bundles["recogniser"], detector=bundles["detector"], target_fmr=1e-3
    ) as client:
        yield client


def shape_of(value: Any) -> Any:
    """The keys of a value at every depth, with the values beside those that differ from run to run."""
    passing = ("timings_ms", "face_id", "created_at")
    if isinstance(value, dict):
        return {key: "" if key in passing else shape_of(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shape_of(item) for item in value]
    return round(value, 5) if isinstance(value, float) else value


def test_photos_are_answered_alike(ask: Ask, client: httpx.Client, tmp_path: Path) -> None:
    ada, again, group = (tmp_path / f"{name}.png" for name in ("ada", "again", "group"))
    files = {"probe": ada.read_bytes(), "reference": again.read_bytes()}
    over_http = client.post("/v1/verify", files=files, data={"target_fmr": "0.001"}).json()
    assert shape_of(ask("verify", ada, again, "--target-fmr", "0.001")) == shape_of(over_http)
    for route in ("detect", "embed"):
        over_http = client.post(f"/v1/{route}", files={"image": group.read_bytes()}).json()
        assert shape_of(ask(route, group)) == shape_of(over_http)


def test_people_and_collections_are_answered_alike(ask: Ask, client: httpx.Client, tmp_path: Path) -> None:
    [item] = ask("enroll", tmp_path / "people", "--collection", "staff")["items"]
    photos = [("images", (tmp_path / "people" / "ada" / name).read_bytes()) for name in item["photos"]]
    assert client.put("/v1/collections/other").status_code == 201
    enrolled = client.post(
        "/v1/collections/other/people", files=photos, data={"person_id": "ada", "name": "ada"}
    ).json()
    own = {"folder", "photos", "name", "already_there"}
    assert shape_of({key: item[key] for key in item.keys() - own}) == shape_of(enrolled)
    assert ask("people", "--collection", "staff") == client.get("/v1/collections/staff/people").json()
    assert ask("collections") == client.get("/v1/collections").json()
    probe = tmp_path / "group.png"
    over_http = client.post("/v1/collections/staff/identify", files={"image": probe.read_bytes()}).json()
    answer = ask("identify", probe, "--collection", "staff")
    assert shape_of(answer) == shape_of(over_http)
    assert answer["results"][0].keys() == over_http["results"][0].keys()
    assert "embedding" not in json.dumps(answer)


def test_errors_are_answered_alike(ask: Ask, client: httpx.Client, tmp_path: Path) -> None:
    ada, room = tmp_path / "ada.png", tmp_path / "room.png"
    files = {"probe": ada.read_bytes(), "reference": room.read_bytes()}
    problem = client.post("/v1/verify", files=files).json()
    error = ask("verify", ada, room, "--target-fmr", "0.001")
    of_http = {"type", "title", "status", "request_id"}
    assert error.keys() == problem.keys() - of_http
    assert [error[key] for key in ("code", "image", "faces_found")] == ["no_face_found", "reference", 0]


def test_models_are_answered_alike(ask: Ask, client: httpx.Client) -> None:
    over_http = {model["name"]: model for model in client.get("/v1/models").json()["items"]}
    listed = ask("models")
    assert listed["next_cursor"] is None
    for bundle in listed["items"]:
        running = over_http.pop(bundle["name"])
        of_here = {"folder", "proof"}  # see below: why there is none is kept by nobody
        of_server = {"device", "provider", "proof"}
        assert {key: bundle[key] for key in bundle.keys() - of_here} == {
            key: running[key] for key in running.keys() - of_server
        }
    assert over_http == {}


@pytest.fixture
def lower_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this machine have a bf16 that is as good as the exact network and twice as fast."""
    monkeypatch.setattr(prepare_graph, "find_offer", lambda *_: Offer("bf16"))
    monkeypatch.setattr(lower, "lower", lambda exact, precision: replace(exact, precision=precision))
    monkeypatch.setattr(lower, "time_sessions", lambda *_: [0.5, 1.0])


@pytest.mark.usefixtures("lower_precision")
def test_the_proof_of_a_precision_is_shown_by_both(ask: Ask, client: httpx.Client) -> None:
    [running] = [each for each in client.get("/v1/models").json()["items"] if each["kind"] == "recogniser"]
    [listed] = [each for each in ask("models")["items"] if each["kind"] == "recogniser"]
    assert listed["precision"] == running["precision"] == "bf16"
    assert listed["proof"] == running["proof"]
    cosines = {"mean_cosine": pytest.approx(1), "worst_cosine": pytest.approx(1)}
    speeds = {"crops_per_second": 2.0, "exact_crops_per_second": 1.0}
    shown = {"precision": "bf16", "used": True, "fault": None, "faces": 64, "own_faces": False}
    assert running["proof"] == shown | cosines | speeds
