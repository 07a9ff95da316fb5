"""People by their names: merged, forgotten all at once, and found however they were enrolled."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from sameface.model.errors import AlreadyExists, FaceNotFound, PersonNotFound
from sameface.model.gallery import subjects
from sameface.model.gallery.gallery import Gallery
from sameface.model.store.access.audit import Wanted
from sameface.model.store.records import Collection
from tests.model.people import newcomer, random_units
from tests.networks import DIMENSION, build_recogniser


@pytest.fixture
def gallery(tmp_path: Path) -> Iterator[Gallery]:
    gallery = Gallery(tmp_path / "gallery.db", build_recogniser(tmp_path))
    gallery.create_collection("staff")
    yield gallery
    gallery.close()


def enrol(gallery: Gallery, person_id: str, name: str | None, seed: int, faces: int = 2) -> np.ndarray:
    units = random_units(faces, DIMENSION, seed=seed)
    gallery.enroll(staff(gallery), [newcomer(person_id, units, name=name)])
    return units


def staff(gallery: Gallery) -> Collection:
    return gallery.get_collection("staff")


def find(gallery: Gallery, unit: np.ndarray) -> tuple[str, float]:
    [[best]] = gallery.search(staff(gallery), unit[None], 1).by_probe()
    return best.person_id, best.similarity


def test_a_merged_person_is_found_as_the_other_one_by_a_search_that_knew_both(gallery: Gallery) -> None:
    enrol(gallery, "ada", "Ada", 1)
    units = enrol(gallery, "bob", "Bob", 2)
    before = [face.face_id for face in gallery.get_person(staff(gallery), "bob").faces]
    assert find(gallery, units[0])[0] == "bob"
    assert subjects.rename_subject(gallery, staff(gallery), "BOB", "ada")
    assert find(gallery, units[0]) == ("ada", 1.0)
    assert (staff(gallery).people, staff(gallery).faces) == (1, 4)
    after = [face.face_id for face in gallery.get_person(staff(gallery), "ada").faces]
    assert after[2:] == before
    entries = [each.entry for each in gallery.store.audit.page(Wanted(), 2)]
    assert [(entry.action, entry.person_id) for entry in entries] == [
        ("add_faces", "ada"),
        ("forget_person", "bob"),
    ]
    assert entries[0].details == {"face_ids": before}


def test_who_has_no_name_goes_by_the_id(gallery: Gallery) -> None:
    enrol(gallery, "p-1", None, 1)
    assert subjects.list_subjects(gallery, staff(gallery)) == ["p-1"]
    assert subjects.find_subject(gallery, staff(gallery), "P-1") == "p-1"
    with pytest.raises(AlreadyExists):
        subjects.add_subject(gallery, staff(gallery), "P-1")


def test_a_new_name_never_gets_the_id_of_somebody_else(gallery: Gallery) -> None:
    enrol(gallery, "Jose", "Jose", 1)
    subjects.add_subject(gallery, staff(gallery), "José")
    assert subjects.find_subject(gallery, staff(gallery), "JOSÉ") == "Jose-2"


def test_everybody_is_forgotten_in_one_step(gallery: Gallery) -> None:
    units = enrol(gallery, "ada", "Ada", 1)
    subjects.add_subject(gallery, staff(gallery), "Bob")
    assert find(gallery, units[0])[0] == "ada"
    assert gallery.forget_everybody(staff(gallery)) == (2, 2)
    assert gallery.search(staff(gallery), units[:1], 1).by_probe() == [[]]
    assert (staff(gallery).people, staff(gallery).faces) == (0, 0)
    assert gallery.forget_everybody(staff(gallery)) == (0, 0)
    entries = [each.entry for each in gallery.store.audit.page(Wanted(), 2)]
    assert {(entry.action, entry.person_id, entry.details["faces"]) for entry in entries} == {
        ("forget_person", "ada", 2),
        ("forget_person", "Bob", 0),
    }


def test_what_nobody_has_is_not_found(gallery: Gallery) -> None:
    with pytest.raises(PersonNotFound):
        subjects.forget_subject(gallery, staff(gallery), "Ada")
    with pytest.raises(FaceNotFound):
        subjects.forget_face(gallery, staff(gallery), "nothing")
    assert subjects.forget_faces(gallery, staff(gallery), ["nothing"]) == []
    assert subjects.forget_faces_of(gallery, staff(gallery), "Ada") == 0
