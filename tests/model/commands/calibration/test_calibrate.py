"""`sameface calibrate`, run as a user runs it, and in this process to watch what it reads."""

import json
import re
import shlex
import shutil
from pathlib import Path

import httpx
import pytest

from sameface.model.bundles import bundle as bundles
from sameface.model.commands.calibration.calibrate import calibrate
from tests.conftest import address_of
from tests.networks import build_recogniser
from tests.pictures import photo_of


def draw_people(folder: Path, people: int) -> None:
    """Two photos of each person, a folder for each."""
    for person in range(people):
        (folder / f"p{person:02}").mkdir(parents=True)
        for noise in range(2):
            (folder / f"p{person:02}" / f"{noise}.png").write_bytes(photo_of(person, noise=noise + 1))


def test_a_recogniser_is_read_and_hashed_once(data: Path, tmp_path: Path, monkeypatch) -> None:
    draw_people(tmp_path / "people", 16)
    (tmp_path / "bundle").mkdir()
    build_recogniser(tmp_path / "bundle")
    hashed: list[Path] = []
    hash_file = bundles.hash_file
    monkeypatch.setattr(bundles, "hash_file", lambda path: hashed.append(path) or hash_file(path))
    calibrate(
        tmp_path / "bundle",
        tmp_path / "people",
        data=tmp_path,
        detector=data / "models" / "detector",
        device="cpu",
        as_json=True,
    )
    assert [path.parent.name for path in hashed].count("bundle") == 1
    assert not (tmp_path / "bundle" / "calibrations").exists()
    assert (tmp_path / "gallery.db").exists()


@pytest.fixture
def home(data: Path, tmp_path: Path) -> Path:
    """A data folder with the tiny networks, and beside it photos of people."""
    shutil.copytree(data / "models", tmp_path / "home" / "models")
    draw_people(tmp_path / "people", 30)
    return tmp_path / "home"


def calibrate_by_name(run, home: Path, *words: object) -> str:
    done = run("calibrate", "recogniser", home.parent / "people", *words, SAMEFACE_DATA=str(home))
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_line_at_the_end_is_one_that_serves(run, start, home: Path) -> None:
    said = calibrate_by_name(run, home)
    assert "decides from the next start on; 1e-4, the default rate, is lower than its data supports" in said
    program, command, *flags = shlex.split(said.splitlines()[-2])
    assert (program, command, "--target-fmr" in flags) == ("sameface", "serve", True)
    address = address_of(start(*flags, SAMEFACE_DATA=str(home), SAMEFACE_RECOGNIZER=""))
    [used] = httpx.get(f"{address}/v1/calibrations").json()["items"]
    assert (used["name"], used["default"]) == ("tiny-recogniser/own", True)


def test_a_second_calibration_is_not_in_use_until_it_is_named(run, home: Path) -> None:
    calibrate_by_name(run, home)
    said = calibrate_by_name(run, home, "--name", "second")
    assert "tiny-recogniser/second is not in use yet" in said
    assert "--calibration second" in said.splitlines()[-2]
    again = json.loads(calibrate_by_name(run, home, "--name", "third", "--json"))
    assert (again["in_use"], "--calibration third" in again["serve"]) == (False, True)
    chosen = json.loads(calibrate_by_name(run, home, "--name", "fourth", "--default", "--json"))
    assert (chosen["in_use"], "--calibration" in chosen["serve"]) == (True, False)


def test_rates_are_in_one_notation_and_groups_say_the_rate_they_are_compared_at(run, home: Path) -> None:
    rows = [f"p{person:02},{'odd' if person % 2 else 'even'}" for person in range(30)]
    (home / "groups.csv").write_text("\n".join(rows))
    said = calibrate_by_name(run, home, "--groups", home / "groups.csv")
    assert "%" not in said.replace("95 % interval", "")
    assert not re.search(r"e-0|\b0\.0+[1-9]", said.replace("threshold 0.", ""))
    assert re.search(r"At FMR \d\S*e-\d, because 1e-4 is not supported, the threshold", said)
    asked = calibrate_by_name(
        run, home, "--groups", home / "groups.csv", "--name", "b", "--target-fmr", "0.1"
    )
    assert "At FMR 1e-1, the threshold" in asked


def test_a_name_that_is_taken_is_refused_before_the_photos_are_read(run, home: Path) -> None:
    calibrate_by_name(run, home)
    words = ("calibrate", "recogniser", home / "no photos here")
    taken = run(*words, SAMEFACE_DATA=str(home))
    assert (taken.returncode, taken.stderr.partition(":")[0]) == (2, "calibration_refused")
    assert run(*words, "--replace", SAMEFACE_DATA=str(home)).stderr.startswith("labels_refused")
