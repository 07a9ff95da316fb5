"""`sameface calibrations`, and who decides by what it keeps."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import httpx
import pytest

import sameface as package
from sameface.model.bundles.bundle import load_bundle
from sameface.model.decision.calibration_files import save_calibration
from tests.conftest import Serve, address_of
from tests.model.calibrated import calibrate_bundle, measure
from tests.pictures import photo_of
from tests.postgres_server import ON_POSTGRES, gallery_in

Command = Callable[..., "CompletedProcess[str]"]


@pytest.fixture
def home(data: Path, tmp_path: Path) -> Path:
    """A data folder whose recogniser brings the calibration `shipped`; `mine` and `other` are the user's."""
    home = tmp_path / "home"
    shutil.copytree(data / "models", home / "models")
    calibrate_bundle(load_bundle(home / "models" / "recogniser"), "shipped")
    bundle = load_bundle(home / "models" / "recogniser")
    for name in ("mine", "other"):
        save_calibration(measure(bundle, name), bundle, gallery_in(home))
    return home


@pytest.fixture
def sameface(run: Command, home: Path) -> Command:
    """Runs `sameface` on that data folder."""
    bundles = {"SAMEFACE_RECOGNIZER": "recogniser", "SAMEFACE_DETECTOR": "detector"}
    return lambda *words: run(*words, SAMEFACE_DATA=str(home), **bundles)


def in_use(sameface: Command) -> list[str]:
    listed = json.loads(sameface("calibrations", "list", "recogniser", "--json").stdout)["items"]
    return [each["name"].partition("/")[2] for each in listed if each["default"]]


def test_they_are_listed_with_their_evidence_and_the_one_in_use(sameface: Command) -> None:
    shown = sameface("calibrations", "list", "recogniser").stdout
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in shown.splitlines() if "│" in line]
    assert [(row[0], row[1], row[2], row[-1]) for row in rows] == [
        ("mine", "200", "3.8e-4", "no"),
        ("other", "200", "3.8e-4", "no"),
        ("shipped", "200", "3.8e-4", "yes"),
    ]


def test_the_list_is_what_http_answers(sameface: Command, serve: Serve, home: Path) -> None:
    bundles = {name: home / "models" / name for name in ("recogniser", "detector")}
    with serve(
        data=home, recognizer=bundles["recogniser"], detector=bundles["detector"], target_fmr=1e-3
    ) as client:
        over_http = client.get("/v1/calibrations").json()
    assert json.loads(sameface("calibrations", "list", "recogniser", "--json").stdout) == over_http


def test_one_is_shown_and_what_is_shown_can_go_with_the_bundle(sameface: Command, home: Path) -> None:
    shown = sameface("calibrations", "show", "recogniser", "mine")
    assert "tiny-recogniser/mine is not in use yet" in shown.stdout
    assert "--calibration mine" in shown.stdout
    written = sameface("calibrations", "show", "recogniser", "mine", "--json").stdout
    (home / "models" / "recogniser" / "calibrations" / "copy.json").write_text(written)
    copied = json.loads(sameface("calibrations", "show", "recogniser", "copy", "--json").stdout)
    assert copied["curve"] == json.loads(written)["curve"]
    nobody = sameface("calibrations", "show", "recogniser", "nobody")
    assert (nobody.returncode, nobody.stderr.partition(":")[0]) == (2, "calibration_not_found")


@pytest.mark.sqlite
def test_the_one_that_is_chosen_decides_for_the_cli_the_server_and_python(
    sameface: Command, start, home: Path, tmp_path: Path
) -> None:
    chosen = sameface("calibrations", "default", "recogniser", "mine")
    assert "tiny-recogniser/mine decides from the next start on" in chosen.stdout
    assert in_use(sameface) == ["mine"]
    (tmp_path / "ada.png").write_bytes(photo_of(1))
    verified = sameface(
        "verify", tmp_path / "ada.png", tmp_path / "ada.png", "--target-fmr", "1e-3", "--json"
    )
    assert json.loads(verified.stdout)["calibration"] == "tiny-recogniser/mine"
    with package.open(home, recognizer="recogniser", detector="detector", target_fmr=1e-3) as faces:
        assert faces.verify(photo_of(1), photo_of(1)).calibration == "tiny-recogniser/mine"
    bundles = {"SAMEFACE_RECOGNIZER": "recogniser", "SAMEFACE_DETECTOR": "detector"}
    variables = {"SAMEFACE_DATA": str(home), "SAMEFACE_TARGET_FMR": "1e-3", **bundles}
    for setting, expected in ({}, "mine"), ({"SAMEFACE_CALIBRATION": "other"}, "other"):
        address = address_of(start(**variables, **setting))
        listed = httpx.get(f"{address}/v1/calibrations").json()["items"]
        assert [each["name"] for each in listed if each["default"]] == [f"tiny-recogniser/{expected}"]
        models = httpx.get(f"{address}/v1/models").json()["items"]
        assert models[0]["calibration"] == "mine"
    back = sameface("calibrations", "default", "recogniser", "shipped", "--json")
    assert json.loads(back.stdout)["default"] == "tiny-recogniser/shipped"
    assert in_use(sameface) == ["shipped"]


def test_an_own_one_is_removed_and_the_bundles_own_stays(sameface: Command) -> None:
    assert sameface("calibrations", "default", "recogniser", "mine").returncode == 0
    removed = sameface("calibrations", "remove", "recogniser", "mine")
    assert "is removed; tiny-recogniser/shipped decides" in removed.stdout
    assert in_use(sameface) == ["shipped"]
    refused = sameface("calibrations", "remove", "recogniser", "shipped")
    assert (refused.returncode, refused.stderr.partition(":")[0]) == (2, "calibration_refused")
    assert in_use(sameface) == ["shipped"]


def test_one_that_a_collection_decides_by_is_not_removed(sameface: Command, serve: Serve, home: Path) -> None:
    bundles = {name: home / "models" / name for name in ("recogniser", "detector")}
    with serve(
        data=home, recognizer=bundles["recogniser"], detector=bundles["detector"], target_fmr=1e-3
    ) as client:
        assert client.put("/v1/collections/staff", json={"calibration": "mine"}).status_code == 201
    refused = sameface("calibrations", "remove", "recogniser", "mine")
    assert (refused.returncode, "staff" in refused.stderr) == (2, True)


def test_a_choice_that_is_gone_can_be_made_again(sameface: Command, home: Path) -> None:
    assert sameface("calibrations", "default", "recogniser", "shipped").returncode == 0
    (home / "models" / "recogniser" / "calibrations" / "shipped.json").unlink()
    assert in_use(sameface) == []
    assert sameface("calibrations", "default", "recogniser", "other").returncode == 0
    assert in_use(sameface) == ["other"]


def test_the_files_of_a_machine_are_shared_with_the_others(sameface: Command) -> None:
    done = sameface("calibrations", "share", "recogniser", "--json")
    files = ["bundle.json", "calibrations/shipped.json"]
    assert json.loads(done.stdout) == {"shared": files if ON_POSTGRES else []}
    said = sameface("calibrations", "share", "recogniser").stdout
    assert ("copy it to the machines" if ON_POSTGRES else "this machine's alone") in said
