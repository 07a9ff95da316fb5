"""The commands that keep a gallery well, run as a user runs them."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.networks import build_recogniser
from tests.pictures import photo_of

Command = Callable[..., "CompletedProcess[str]"]


@pytest.fixture
def sameface(run: Command, data: Path, tmp_path: Path) -> Command:
    """Runs `sameface` with a data folder of its own, in which two people are enrolled with crops."""
    home = tmp_path / "home"
    shutil.copytree(data / "models", home / "models")
    for person, number in (("ada", 1), ("bob", 2)):
        (tmp_path / "people" / person).mkdir(parents=True)
        (tmp_path / "people" / person / "1.png").write_bytes(photo_of(number))

    def command(*words: object) -> "CompletedProcess[str]":
        return run(*words, SAMEFACE_DATA=str(home))

    enrolled = command("enroll", tmp_path / "people", "--collection", "staff", "--store-crops")
    assert enrolled.returncode == 0, enrolled.stderr
    return command


def test_a_collection_goes_out_and_in_again(sameface: Command, tmp_path: Path) -> None:
    file = tmp_path / "staff.gz"
    exported = sameface("gallery", "export", "staff", file)
    assert (exported.returncode, "2 people, 2 faces" in exported.stdout) == (0, True)
    taken = sameface("gallery", "import", file, "--json")
    assert (taken.returncode, json.loads(taken.stdout)["code"]) == (2, "already_exists")
    imported = json.loads(sameface("gallery", "import", file, "--collection", "copy", "--json").stdout)
    assert (imported["name"], imported["people"], imported["faces"]) == ("copy", 2, 2)
    found = sameface("identify", tmp_path / "people", "--collection", "copy", "--json")
    matches = [answer["results"][0]["match"]["person_id"] for answer in json.loads(found.stdout)]
    assert matches == ["ada", "bob"]


def test_an_export_replaces_a_file_only_if_told_to(sameface: Command, tmp_path: Path) -> None:
    file = tmp_path / "staff.gz"
    file.write_text("something of mine")
    refused = sameface("gallery", "export", "staff", file)
    assert (refused.returncode, refused.stderr.partition(":")[0]) == (2, "archive_refused")
    assert file.read_text() == "something of mine"
    assert sameface("gallery", "export", "staff", file, "--replace").returncode == 0
    assert sameface("gallery", "import", file, "--collection", "copy").returncode == 0


def test_the_old_spelling_works_and_says_the_new_one(sameface: Command, tmp_path: Path) -> None:
    exported = sameface("export", "staff", tmp_path / "staff.gz", "--json")
    assert (exported.returncode, json.loads(exported.stdout)["people"]) == (0, 2)
    assert "`sameface gallery export` now" in exported.stderr
    checkpoint = sameface("export", tmp_path / "last.pt")
    assert (checkpoint.returncode, "`sameface bundle export` now" in checkpoint.stderr) == (2, True)


def test_a_damaged_file_is_refused_in_one_sentence(sameface: Command, tmp_path: Path) -> None:
    (tmp_path / "staff.gz").write_bytes(b"something else")
    for words in (("import", tmp_path / "staff.gz"), ("export", "staff", tmp_path / "nowhere" / "staff.gz")):
        result = sameface("gallery", *words)
        assert (result.returncode, result.stderr.partition(":")[0]) == (2, "archive_refused")
        assert "Traceback" not in result.stderr


@pytest.mark.sqlite
def test_a_gallery_is_checked_and_repaired(sameface: Command, tmp_path: Path) -> None:
    assert "agree" in sameface("gallery", "check").stdout
    with closing(sqlite3.connect(tmp_path / "home" / "gallery.db")) as connection, connection:
        connection.execute("UPDATE collections SET people = 7")
    found = sameface("gallery", "check", "--collection", "staff")
    assert (found.returncode, "7 people" in found.stdout) == (1, True)
    repaired = sameface("gallery", "check", "--repair", "--json")
    [finding] = json.loads(repaired.stdout)
    assert (repaired.returncode, finding["code"], finding["repaired"]) == (0, "counters", True)
    clean = sameface("gallery", "check", "--json")
    assert (clean.returncode, json.loads(clean.stdout)) == (0, [])
    assert sameface("gallery", "check", "--collection", "nobody").returncode == 2


def test_a_collection_moves_to_another_recogniser(sameface: Command, tmp_path: Path) -> None:
    folder = tmp_path / "home" / "models" / "other"
    folder.mkdir()
    build_recogniser(folder, name="other", seed=7)
    words = ("gallery", "reembed", "staff", "--recognizer", folder)
    moved = sameface(*words)
    assert moved.returncode == 0, moved.stderr
    assert moved.stdout.splitlines()[-1] == f"Restart the server with `--recognizer {folder}`."
    again = sameface(*words)
    assert (again.returncode, "already" in again.stdout) == (0, True)
    asked = ("identify", tmp_path / "people", "--collection", "staff", "--json")
    assert sameface(*asked).returncode == 2
    assert sameface(*asked, "--recognizer", folder).returncode == 0
    assert sameface("gallery", "check").returncode == 0


def test_a_collection_without_crops_does_not_move(sameface: Command, tmp_path: Path, data: Path) -> None:
    assert sameface("enroll", tmp_path / "people", "--collection", "bare").returncode == 0
    folder = tmp_path / "other"
    folder.mkdir()
    build_recogniser(folder, name="other", seed=7)
    refused = sameface("gallery", "reembed", "bare", "--recognizer", folder)
    assert (refused.returncode, refused.stderr.partition(":")[0]) == (2, "reembed_refused")
    assert "2 faces of 2 people" in refused.stderr
    same = sameface("gallery", "reembed", "bare", "--recognizer", data / "models" / "recogniser")
    assert same.returncode == 0


def test_a_collection_is_not_made_under_a_name_that_no_request_can_have(
    sameface: Command, tmp_path: Path
) -> None:
    result = sameface("enroll", tmp_path / "people", "--collection", "staff (importing)")
    assert (result.returncode, result.stderr.partition(":")[0]) == (2, "invalid_request")
