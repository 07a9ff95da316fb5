"""`sameface enroll`, and what the other commands then say about the people."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.pictures import photo_of

Enroll = Callable[..., "CompletedProcess[str]"]


@pytest.fixture
def enroll(run, tmp_path: Path) -> Enroll:
    """Writes these photos, by folder, and enrols them into a data folder of the test's own."""

    def command(people: dict[str, list[bytes]], *flags: str) -> "CompletedProcess[str]":
        for person, photos in people.items():
            (tmp_path / "people" / person).mkdir(parents=True, exist_ok=True)
            for number, photo in enumerate(photos):
                (tmp_path / "people" / person / f"{number}.png").write_bytes(photo)
        words = ("enroll", tmp_path / "people", "--collection", "staff", *flags)
        return run(*words, SAMEFACE_DATA=str(tmp_path / "home"))

    return command


@pytest.fixture
def sameface(run, tmp_path: Path) -> Callable[..., "CompletedProcess[str]"]:
    """Runs `sameface` on that data folder."""
    return lambda *words: run(*words, SAMEFACE_DATA=str(tmp_path / "home"))


def test_a_folder_of_people_is_enrolled_once_and_they_are_identified(
    enroll: Enroll, sameface, tmp_path
) -> None:
    people = {"ada": [photo_of(1), photo_of(1, noise=2), photo_of()], "bob": [photo_of(2)]}
    first = enroll(people, "--json")
    report = json.loads(first.stdout)
    assert first.returncode == 0, first.stderr
    assert (report["enrolled"], report["already_there"], report["not_enrolled"]) == (3, 0, 0)
    again = json.loads(enroll(people, "--json").stdout)
    assert (again["enrolled"], again["already_there"]) == (0, 3)
    found = sameface("identify", tmp_path / "people" / "bob" / "0.png", "--collection", "staff", "--json")
    assert json.loads(found.stdout)["results"][0]["match"]["person_id"] == "bob"
    assert "bob" in sameface("people", "--collection", "staff").stdout
    assert "2" in sameface("collections").stdout
    assert sameface("forget", "ada", "--collection", "staff").returncode == 0
    assert sameface("forget", "ada", "--collection", "staff").returncode == 2


def test_names_that_are_no_ids_become_some_and_are_kept_as_names(enroll: Enroll, sameface) -> None:
    people = {
        "Tony Blair": [photo_of(1)],
        "José": [photo_of(2)],
        "Jose": [photo_of(3)],
        "张伟": [photo_of(4)],
    }
    done = enroll(people, "--json")
    assert done.returncode == 0, done.stderr
    listed = json.loads(sameface("people", "--collection", "staff", "--json").stdout)["items"]
    names = {person["name"]: person["person_id"] for person in listed}
    assert names.keys() == people.keys()
    assert (names["Tony Blair"], names["Jose"], names["José"]) == ("Tony-Blair", "Jose", "Jose-2")
    again = json.loads(enroll(people, "--json").stdout)
    assert (again["enrolled"], again["already_there"]) == (0, 4)


def test_somebody_who_cannot_be_enrolled_is_shown_with_the_reason(enroll: Enroll) -> None:
    people = {"ada": [photo_of(1)], "room": [photo_of(), b"no picture"], "empty": []}
    done = enroll(people, "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["not_enrolled"]) == (1, 2)
    items = {Path(item["folder"]).name: item for item in report["items"]}
    assert items["empty"]["error"]["code"] == "folder_refused"
    assert items["room"]["error"]["code"] == "no_face_found"
    reasons = [(each["image"], each["code"]) for each in items["room"]["error"]["rejected"]]
    assert reasons == [(0, "no_face_found"), (1, "unsupported_image")]
    shown = enroll(people)
    assert shown.returncode == 1
    assert "1 of 3 people are in staff" in shown.stdout
    for sentence in ("There are no photos in the folder", "No face was found", "JPEG"):
        assert sentence in shown.stdout


def test_nobody_at_all_is_no_success(enroll: Enroll) -> None:
    assert enroll({"room": [photo_of()]}).returncode == 1


def test_the_warnings_of_http_are_shown(enroll: Enroll) -> None:
    people = {"ada": [photo_of(1), photo_of(7)], "eve": [photo_of(1)], "group": [photo_of(5, 6)]}
    shown = enroll(people).stdout
    assert "the very same photo is enrolled as ada" in shown
    assert "looks like ada, at a similarity of 1.000" in shown
    assert "is unlike the other faces of this person" in shown
    assert "shows 2 people" in shown


def test_the_warnings_of_http_are_in_the_json(enroll: Enroll) -> None:
    report = json.loads(enroll({"ada": [photo_of(1)], "eve": [photo_of(1)]}, "--json").stdout)
    ada, eve = report["items"]
    assert ada["warnings"] == []
    assert {warning["code"] for warning in eve["warnings"]} == {"same_photo", "looks_like_another_person"}


def test_many_photos_keep_their_places(enroll: Enroll) -> None:
    photos = [photo_of() if place in (3, 20) else photo_of(1, noise=place + 1) for place in range(22)]
    [item] = json.loads(enroll({"ada": photos}, "--json").stdout)["items"]
    rejected = sorted(item["photos"][each["image"]] for each in item["rejected"])
    assert rejected == ["20.png", "3.png"]
    assert len(item["faces"]) == 20


@pytest.mark.parametrize(
    ("folder", "why"), [("nofolder", "There is no folder"), ("empty", "has no folders in it")]
)
def test_a_folder_without_people_is_told_as_such(run, tmp_path: Path, folder: str, why: str) -> None:
    (tmp_path / "empty").mkdir()
    done = run("enroll", tmp_path / folder, "--collection", "staff")
    assert (done.returncode, done.stderr.partition(":")[0]) == (2, "folder_refused")
    assert why in done.stderr


def test_a_photo_of_two_people_is_enrolled_once_for_each(enroll: Enroll) -> None:
    people = {person: [photo_of(1)] for person in ("ada", "eve")}
    for expected in ((2, 0), (0, 2)):
        report = json.loads(enroll(people, "--json").stdout)
        assert (report["enrolled"], report["already_there"]) == expected
