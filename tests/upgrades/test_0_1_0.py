"""What version 0.1.0 wrote is read by this one."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests.conftest import Serve

LEFT_BEHIND = Path(__file__).parent / "0.1.0"
PHOTOS = LEFT_BEHIND / "photos"

Command = Callable[..., "CompletedProcess[str]"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A copy of the data folder."""
    return shutil.copytree(LEFT_BEHIND / "data", tmp_path / "home")


@pytest.fixture
def interrupted(home: Path) -> Path:
    """The data folder with the gallery in which three commands were killed."""
    shutil.copy(LEFT_BEHIND / "interrupted.db", home / "gallery.db")
    shutil.rmtree(home / "indexes")
    return home


@pytest.fixture
def sameface(run: Command, home: Path) -> Command:
    """Runs `sameface` on the data folder with its own bundles."""
    places = {"DATA": home, "RECOGNIZER": home / "models/recogniser", "DETECTOR": home / "models/detector"}
    variables = {f"SAMEFACE_{name}": str(place) for name, place in places.items()}
    return lambda *words: run(*words, **variables)


def answer_of(done: "CompletedProcess[str]", exit_code: int = 0) -> Any:
    """What a command said as JSON."""
    assert done.returncode == exit_code, done.stdout + done.stderr
    return json.loads(done.stdout)


def identify_all(sameface: Command, collection: str) -> dict[str, str | None]:
    """Who is on each photo; Carl is a stranger, so the exit code is 1."""
    answers = answer_of(sameface("identify", PHOTOS, "--collection", collection, "--json"), 1)
    matches = {Path(answer["photo"]).stem: answer["results"][0]["match"] for answer in answers}
    return {photo: match and match["person_id"] for photo, match in matches.items()}


def test_people_are_listed_with_name_metadata_and_faces(sameface: Command) -> None:
    ada, bob = answer_of(sameface("people", "--collection", "staff", "--json"))["items"]
    assert (ada["person_id"], ada["name"], ada["metadata"]) == ("ada", "Ada Example", {"desk": 12})
    assert (bob["person_id"], bob["name"], bob["metadata"]) == ("bob", None, {})
    assert (len(ada["faces"]), len(bob["faces"])) == (2, 2)


def test_photos_are_identified(sameface: Command) -> None:
    assert identify_all(sameface, "staff") == {"ada": "ada", "bob": "bob", "carl": None}


def test_nothing_is_wrong_with_the_gallery_and_its_snapshot(sameface: Command, home: Path) -> None:
    assert (home / "indexes" / "1.index").exists()
    assert answer_of(sameface("gallery", "check", "--json")) == []


def test_the_archive_is_imported(sameface: Command) -> None:
    imported = answer_of(sameface("import", LEFT_BEHIND / "staff.gz", "--collection", "copy", "--json"))
    assert (imported["name"], imported["people"], imported["faces"]) == ("copy", 2, 4)
    assert imported["store_crops"] is True
    assert identify_all(sameface, "copy") == {"ada": "ada", "bob": "bob", "carl": None}


def test_crops_are_embedded_by_another_recogniser(sameface: Command, home: Path) -> None:
    moved = answer_of(
        sameface("gallery", "reembed", "staff", "--recognizer", home / "models/other", "--json")
    )
    assert (moved["model"], moved["faces"]) == ("other", 4)


def test_the_bundle_decides_by_its_calibration(sameface: Command) -> None:
    words = ("verify", PHOTOS / "ada.jpg", PHOTOS / "bob.jpg", "--target-fmr", "0.01", "--json")
    decision = answer_of(sameface(*words), 1)
    assert decision["calibration"] == "tiny-recogniser/drawn"
    assert decision["threshold"] == 0.403893  # what 0.1.0 says
    assert decision["similarity"] == pytest.approx(-0.255839, abs=1e-4)


@pytest.mark.usefixtures("interrupted")
def test_drafts_are_not_listed_and_are_repaired_away(sameface: Command, home: Path, serve: Serve) -> None:
    bundles = {"recognizer": home / "models/recogniser", "detector": home / "models/detector"}
    with serve(data=home, **bundles, target_fmr=0.01) as client:
        listed = client.get("/v1/collections").json()["items"]
    assert [collection["name"] for collection in listed] == ["staff", "visitors"]
    nobody = answer_of(sameface("people", "--collection", "guests", "--json"), 2)
    assert nobody["code"] == "collection_not_found"
    found = answer_of(sameface("gallery", "check", "--json"), 1)
    assert [finding["code"] for finding in found] == ["leftover"] * 3
    repaired = answer_of(sameface("gallery", "check", "--repair", "--json"))
    assert [finding["repaired"] for finding in repaired] == [True] * 3
    assert answer_of(sameface("gallery", "check", "--json")) == []
    assert identify_all(sameface, "staff") == {"ada": "ada", "bob": "bob", "carl": None}


@pytest.mark.usefixtures("interrupted")
def test_what_was_killed_is_run_again_to_its_end(sameface: Command, home: Path) -> None:
    imported = answer_of(sameface("import", LEFT_BEHIND / "staff.gz", "--collection", "guests", "--json"))
    assert imported["faces"] == 4
    words = ("--recognizer", home / "models/other", "--json")
    for name in ("staff", "visitors"):
        moved = answer_of(sameface("gallery", "reembed", name, *words))
        assert (moved["model"], moved["people"], moved["faces"]) == ("other", 2, 4)
    assert answer_of(sameface("gallery", "check", "--json")) == []


def test_its_calibration_is_listed_beside_new_ones(sameface: Command) -> None:
    def names() -> dict[str, bool]:
        listed = answer_of(sameface("calibrations", "list", "recogniser", "--json"))["items"]
        return {each["name"]: each["default"] for each in listed}

    assert names() == {"tiny-recogniser/drawn": True}
    assert answer_of(sameface("calibrations", "default", "recogniser", "drawn", "--json"))["default"]
    assert names() == {"tiny-recogniser/drawn": True}
    assert answer_of(sameface("gallery", "check", "--json")) == []
