"""Subjects are people by their names."""

import pytest

from tests.api.compreface.conftest import Service
from tests.pictures import photo_of


def list_subjects(recognition: Service) -> list[str]:
    return recognition.call("GET", "/recognition/subjects").json()["subjects"]


def test_subjects_are_added_listed_renamed_and_deleted(recognition: Service) -> None:
    added = recognition.call("POST", "/recognition/subjects", json={"subject": "Ada Lovelace"})
    assert (added.status_code, added.json()) == (201, {"subject": "Ada Lovelace"})
    assert list_subjects(recognition) == ["Ada Lovelace"]
    renamed = recognition.call(
        "PUT", "/recognition/subjects/ada lovelace", json={"subject": "Ada", "api_endpoint": "Ada Lovelace"}
    )
    assert renamed.json() == {"updated": True}
    assert list_subjects(recognition) == ["Ada"]
    assert recognition.call("DELETE", "/recognition/subjects/ADA").json() == {"subject": "ADA"}
    assert list_subjects(recognition) == []


def test_a_subject_is_matched_without_regard_to_case(recognition: Service) -> None:
    recognition.add("Åsa", photo_of(1))
    recognition.add("åSA", photo_of(1, noise=1))
    assert list_subjects(recognition) == ["Åsa"]
    taken = recognition.call("POST", "/recognition/subjects", json={"subject": "ÅSA"})
    assert (taken.status_code, taken.json()["code"]) == (400, 43)


def test_a_name_that_somebody_else_once_had_is_free_again(recognition: Service) -> None:
    recognition.add("ada", photo_of(1))
    recognition.call("PUT", "/recognition/subjects/ada", json={"subject": "Bob"})
    recognition.add("ada", photo_of(2))
    assert list_subjects(recognition) == ["Bob", "ada"]
    assert [face["subjects"][0]["subject"] for face in recognition.recognize(photo_of(1))] == ["Bob"]
    assert [face["subjects"][0]["subject"] for face in recognition.recognize(photo_of(2))] == ["ada"]


def test_a_subject_that_gets_a_taken_name_is_merged(recognition: Service) -> None:
    first, second = recognition.add("ada", photo_of(1)), recognition.add("Augusta", photo_of(2))
    assert recognition.recognize(photo_of(2))[0]["subjects"][0]["subject"] == "Augusta"
    merged = recognition.call("PUT", "/recognition/subjects/Augusta", json={"subject": "ADA"})
    assert merged.json() == {"updated": True}
    assert list_subjects(recognition) == ["ada"]
    faces = recognition.call("GET", "/recognition/faces", params={"subject": "ada"}).json()["faces"]
    assert [face["image_id"] for face in faces] == [first, second]
    assert recognition.recognize(photo_of(2))[0]["subjects"][0]["subject"] == "ada"
    gallery = recognition.client.app.state.gallery
    counted = gallery.get_collection(recognition.collection)
    assert (counted.people, counted.faces) == (1, 2)


@pytest.mark.parametrize("name", ["ada", "", " "])
def test_the_same_or_an_empty_name_changes_nothing(recognition: Service, name: str) -> None:
    recognition.add("ada", photo_of(1))
    renamed = recognition.call("PUT", "/recognition/subjects/ada", json={"subject": name})
    assert renamed.json() == {"updated": False}


def test_all_subjects_are_deleted_at_once(recognition: Service) -> None:
    recognition.add("ada", photo_of(1))
    recognition.call("POST", "/recognition/subjects", json={"subject": "bob"})
    assert recognition.call("DELETE", "/recognition/subjects").json() == {"deleted": 2}
    assert list_subjects(recognition) == []
    assert recognition.recognize(photo_of(1))[0]["subjects"] == []
    assert recognition.call("DELETE", "/recognition/subjects").json() == {"deleted": 0}


def test_people_of_the_native_routes_are_subjects(recognition: Service) -> None:
    recognition.add("ada", photo_of(1))
    gallery = recognition.client.app.state.gallery
    [person] = gallery.list_people(gallery.get_collection(recognition.collection), 10)
    assert (person.person_id, person.name, len(person.faces)) == ("ada", "ada", 1)


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("POST", "", {"subject": ""}, 400, 5),
        ("POST", "", {}, 400, 5),
        ("POST", "", {"subject": "x" * 51}, 400, 36),
        ("POST", "", {"subject": "a/b"}, 400, 36),
        ("POST", "", {"subject": 3}, 400, 26),
        ("POST", "", [1], 400, 26),
        ("PUT", "/nobody", {"subject": "ada"}, 404, 42),
        ("DELETE", "/nobody", None, 404, 42),
        ("PATCH", "/nobody", None, 404, 0),
    ],
)
def test_bad_subjects_get_errors_of_their_own(
    recognition: Service, method: str, path: str, body: object, status: int, code: int
) -> None:
    answer = recognition.call(method, f"/recognition/subjects{path}", json=body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.json().keys() == {"message", "code"}
    assert answer.headers["content-type"] == "application/json"
