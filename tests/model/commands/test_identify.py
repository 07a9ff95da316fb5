"""`sameface identify`, as a user reads it."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from PIL import Image, ImageChops

from sameface.model.photo.draw import COLOUR
from tests.model.calibrated import calibrate_bundle
from tests.networks import build_recogniser
from tests.pictures import photo_of

Identify = Callable[..., "CompletedProcess[str]"]


@pytest.fixture
def identify(run, tmp_path: Path) -> Identify:
    """Identifies among two people, with the bundle in the folder `bundle`."""
    (tmp_path / "bundle").mkdir()
    build_recogniser(tmp_path / "bundle")
    variables = {"SAMEFACE_DATA": str(tmp_path / "home"), "SAMEFACE_RECOGNIZER": str(tmp_path / "bundle")}
    for person, number in (("Ada L", 1), ("bob", 2)):
        (tmp_path / "people" / person).mkdir(parents=True)
        (tmp_path / "people" / person / "1.png").write_bytes(photo_of(number))
    enrolled = run("enroll", tmp_path / "people", "--collection", "staff", **variables)
    assert enrolled.returncode == 0, enrolled.stderr
    (tmp_path / "group.png").write_bytes(photo_of(1, 9))
    (tmp_path / "people" / "room.png").write_bytes(photo_of())
    return lambda name, *flags: run("identify", tmp_path / name, "--collection", "staff", *flags, **variables)


def test_faces_are_numbered_with_their_boxes(identify: Identify) -> None:
    said = identify("group.png")
    assert said.returncode == 1
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in said.stdout.splitlines()]
    faces = {row[0]: row[1:4] for row in rows if len(row) == 5}
    assert sorted(faces.values()) == [
        ["128, 96, 48 x 48", "unknown", ""],
        ["48, 96, 48 x 48", "Ada-L", "Ada L"],
    ]
    assert faces.keys() == {"1", "2"}


def test_the_threshold_is_shown_with_where_it_comes_from(identify: Identify, tmp_path: Path) -> None:
    assert "0.500 or more among 2 people with 2 faces, as published" in identify("group.png").stdout
    assert "0.900 or more" in identify("group.png", "--threshold", "0.9").stdout
    calibration = calibrate_bundle(build_recogniser(tmp_path / "bundle"))
    assert f"for FPIR 1e-2, by {calibration.name}" in identify("group.png").stdout


def test_a_photo_that_failed_is_a_line_of_its_own(identify: Identify, tmp_path: Path) -> None:
    said = identify("people")
    assert f"no_face_found: {tmp_path / 'people' / 'room.png'}: No face was found" in said.stdout
    assert "No face" not in "".join(line for line in said.stdout.splitlines() if "│" in line)
    alone = identify("people/room.png")
    assert (alone.returncode, alone.stderr.partition(":")[0]) == (2, "no_face_found")
    assert "room.png" in alone.stderr


def test_a_folder_as_json_has_an_answer_or_an_error_for_each_photo(identify: Identify) -> None:
    answers = {Path(each["photo"]).name: each for each in json.loads(identify("people", "--json").stdout)}
    assert answers["room.png"]["error"]["code"] == "no_face_found"
    assert answers["1.png"]["gallery_size"] == 2


def test_faces_are_drawn_with_their_names(identify: Identify, tmp_path: Path) -> None:
    assert identify("group.png", "--draw", tmp_path / "out.png").returncode == 1
    with Image.open(tmp_path / "out.png") as drawn, Image.open(tmp_path / "group.png") as plain:
        assert drawn.getpixel((48, 120)) == COLOUR
        above = (48, 80, 90, 95)  # where the name is
        assert ImageChops.difference(drawn.crop(above), plain.convert("RGB").crop(above)).getbbox()
    folder = identify("people", "--draw", tmp_path / "out.png")
    assert (folder.returncode, "one photo" in folder.stderr) == (2, True)
