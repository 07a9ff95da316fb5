"""The walk-throughs of the docs, typed as they are written: one test per newcomer."""

import json
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from sameface.model.data_folder import DataFolder
from tests.docs.pages import ROOT
from tests.networks import build_detector, build_recogniser
from tests.newcomers.shell import Typed, read_lines, type_lines
from tests.pictures import photo_of

PAGE = "docs/walkthroughs.md"
FAMILY = ["Ada Lovelace", "Emmy Noether", "José", "Mary", "Tony Blair"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home after `make serve`, with tiny networks in the places of the published ones."""
    for name, build in (("sface-2021dec", build_recogniser), ("yunet-2023mar", build_detector)):
        folder = tmp_path / ".sameface" / "models" / name
        folder.mkdir(parents=True)
        build(folder)
    return tmp_path


def draw_people(folder: Path, people: Iterable[tuple[int, str]], photos: int = 3) -> None:
    """A folder per person, each with some photos that differ by their noise."""
    for person, name in people:
        (folder / name).mkdir(parents=True)
        for noise in range(photos):
            (folder / name / f"{noise}.png").write_bytes(photo_of(person, noise=100 * person + noise + 1))


def number_people(first: int, last: int) -> list[tuple[int, str]]:
    return [(person, f"p{person:03}") for person in range(first, last)]


def walk(heading: str, home: Path) -> list[Typed]:
    """Type the lines under a heading of the page."""
    return type_lines(read_lines(PAGE, heading), home)


def names_in(typed: Typed) -> list[str | None]:
    """The names that an answer of identify gives to the faces, from left to right."""
    results = json.loads(typed.said)["results"]
    results.sort(key=lambda result: result["face"]["box"]["left"])
    return [result["match"] and result["match"]["name"] for result in results]


def assert_done(*typed: Typed) -> None:
    assert [(each.line, each.code, each.complained) for each in typed if each.code] == []


def test_the_people_of_a_home_are_enrolled_found_and_deleted(home: Path) -> None:
    draw_people(home / "photos", enumerate(FAMILY, 1))
    (home / "group.jpg").write_bytes(photo_of(3, 1, 9, noise=77))
    (home / "stranger.jpg").write_bytes(photo_of(8, noise=78))
    typed = walk("The people of a home", home)
    enrolled, people, served, group, stranger, drawn, deleted, group_without_her, collections = typed
    assert_done(enrolled, people, served, group, stranger, deleted, group_without_her, collections)
    assert "15 photos enrolled" in enrolled.said
    assert all(name in people.said for name in FAMILY)
    assert names_in(group) == ["José", "Ada Lovelace", None]
    assert names_in(stranger) == [None]
    assert (drawn.code, "unknown" in drawn.said) == (1, True)
    assert (home / "names.png").exists()
    assert deleted.said == ""
    assert names_in(group_without_her) == ["José", None, None]
    assert re.search(r"home\W+4\W+12\W", collections.said)


@pytest.fixture
def bank(real_data: DataFolder, tmp_path: Path) -> Path:
    """A home after `make serve`, and three photos for a bank."""
    (tmp_path / ".sameface").mkdir()
    for folder in (real_data.models, real_data.cache):
        (tmp_path / ".sameface" / folder.name).symlink_to(folder)
    for name, portrait in {"selfie": "obama", "id": "obama2", "stranger": "biden"}.items():
        shutil.copy(real_data.demo / f"{portrait}.jpg", tmp_path / f"{name}.jpg")
    return tmp_path


def test_a_selfie_is_compared_with_an_id_by_those_who_have_the_key(bank: Path) -> None:
    typed = walk("A selfie against an ID", bank)
    assert_done(*typed)
    same, stranger, without_key = (json.loads(each.said) for each in typed if each.line.startswith("curl"))
    assert (same["same_person"], same["target_fmr"]) == (True, 1e-5)
    assert (stranger["same_person"], stranger["threshold"]) == (False, same["threshold"])
    assert (without_key["status"], without_key["code"]) == (401, "unauthorized")


def test_a_model_of_ones_own_is_trained_calibrated_and_served(home: Path) -> None:
    (home / "training").symlink_to(ROOT / "training")
    draw_people(home / "photos", number_people(0, 40))
    draw_people(home / "others", number_people(40, 80))
    typed = walk("A model of your own", home)
    assert_done(*typed)
    *_, calibrated, served, asked = typed
    [next_line] = re.findall(r"^ *(sameface serve .+)$", calibrated.said, re.MULTILINE)
    assert next_line.startswith("sameface serve --recognizer ")
    assert set(re.findall(r"--[\w-]+", served.line)) <= set(re.findall(r"--[\w-]+", next_line))
    [calibration] = json.loads(asked.said)["items"]
    assert calibration["name"].endswith("/first")


def test_thresholds_are_measured_by_groups_and_two_models_compared(home: Path) -> None:
    everybody = number_people(0, 60)
    draw_people(home / "photos", everybody)
    draw_people(home / "later", number_people(60, 110))
    groups = "".join(f"{name},{'east' if person % 2 else 'west'}\n" for person, name in everybody)
    (home / "groups.csv").write_text(groups)
    (home / "mine").mkdir()
    build_recogniser(home / "mine", name="mine", seed=2)
    typed = walk("Thresholds from your own photos", home)
    assert_done(*typed)
    _, by_worst, listed, *_, again = typed
    assert "east" in by_worst.said
    assert "west" in by_worst.said
    assert re.search(r"cameras.*fair", listed.said, re.DOTALL)
    new, seen = (json.loads((home / out / "report.json").read_text()) for out in ("evaluation", "again"))
    [holds, _], [flattered] = new["evaluations"], seen["evaluations"]
    assert holds["calibrated"]["verdict"] in ("holds", "cannot_say")
    assert new["difference"]["verdict"] in ("better", "worse", "cannot_say")
    assert flattered["calibrated"]["overlap"] == 1
    assert "made on" in again.said + again.complained
    assert (home / "evaluation" / "report.html").exists()
