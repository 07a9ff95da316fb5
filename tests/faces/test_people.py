"""Collections and people are the same to both."""

import numpy as np
import pytest

from tests.faces.library import Faces, Library
from tests.networks import DIMENSION
from tests.pictures import photo_of


def test_a_person_is_enrolled_identified_verified_and_forgotten(library: Library, faces: Faces) -> None:
    staff = faces.collection("staff")
    enrolled = staff.enroll("ada", [photo_of(1), photo_of()], name="Ada", metadata={"room": 7})
    assert (enrolled.person_id, len(enrolled.faces), enrolled.rejected[0].code) == ("ada", 1, "no_face_found")
    [result] = staff.identify(photo_of(1, noise=4)).results
    assert (result.match.person_id, result.match.name) == ("ada", "Ada")
    assert staff.verify("ada", photo_of(1, noise=5)).same_person
    assert staff.identify(photo_of(2)).results[0].match is None
    [ada] = staff.people()
    assert (ada.name, ada.metadata, len(ada.faces)) == ("Ada", {"room": 7}, 1)
    assert staff.update("ada", name="Ada L.").name == "Ada L."
    assert faces.collections()[0].people == 1
    staff.forget("ada")
    assert staff.identify(photo_of(1)).results[0].candidates == []
    with pytest.raises(library.SamefaceError) as failure:
        staff.person("ada")
    assert failure.value.code == "person_not_found"


def test_a_known_id_is_an_error_and_gets_more_faces_when_asked(library: Library, faces: Faces) -> None:
    staff = faces.collection("staff")
    staff.enroll("ada", [photo_of(1)])
    for attempt, code in (
        (lambda: staff.enroll("ada", [photo_of(1, noise=2)]), "already_exists"),
        (lambda: staff.add_faces("bob", [photo_of(2)]), "person_not_found"),
        (lambda: staff.enroll("no id", [photo_of(2)]), "invalid_request"),
        (lambda: faces.collection("no name").enroll("ada", [photo_of(1)]), "invalid_request"),
        (lambda: faces.collection("nobody").identify(photo_of(1)), "collection_not_found"),
        (lambda: staff.enroll("cleo", []), "invalid_request"),
        (lambda: staff.enroll("cleo", [photo_of(3)], name="\ud800"), "invalid_request"),
        (lambda: staff.enroll("cleo", [photo_of(3)], metadata={"a": float("nan")}), "invalid_request"),
        (lambda: staff.update("ada", metadata={"a": object()}), "invalid_request"),
        (lambda: staff.identify(photo_of(1), faces="nope"), "invalid_request"),
    ):
        with pytest.raises(library.SamefaceError) as failure:
            attempt()
        assert failure.value.code == code
    assert len(staff.add_faces("ada", [photo_of(1, noise=2)]).faces) == 1
    assert len(staff.person("ada").faces) == 2


def test_a_person_keeps_what_an_update_does_not_name(faces: Faces) -> None:
    staff = faces.collection("staff")
    staff.enroll("ada", [photo_of(1)], name="Ada", metadata={"room": 7})
    assert staff.update("ada", metadata={"room": 8}).name == "Ada"
    changed = staff.update("ada", name=None)
    assert (changed.name, changed.metadata) == (None, {"room": 8})


def test_embeddings_go_in_and_out(faces: Faces) -> None:
    [face] = faces.embed(photo_of(1)).faces
    assert np.asarray(face.embedding).shape == (DIMENSION,)
    staff = faces.collection("staff")
    made = staff.enroll(None, embeddings=[face.embedding])
    assert staff.identify(face.embedding).results[0].match.person_id == made.person_id
    assert staff.identify(face.embedding.tolist()).results[0].face is None


def test_somebody_is_enrolled_or_gets_more_faces(faces: Faces) -> None:
    staff = faces.collection("staff")
    staff.enroll_or_add("ada", [photo_of(1)], name="Ada")
    staff.enroll_or_add("ada", [photo_of(1, noise=2)], name="Somebody")
    assert (staff.person("ada").name, len(staff.person("ada").faces)) == ("Ada", 2)


def test_the_first_enrolment_makes_the_collection_as_it_was_asked_for(faces: Faces) -> None:
    faces.collection("staff", store_crops=True).enroll("ada", [photo_of(1)])
    described = faces.collection("staff").describe()
    assert (described.store_crops, described.people, described.index) == (True, 1, "exact")
    assert faces.collections() == [described]


def test_a_face_and_a_collection_are_forgotten(library: Library, faces: Faces) -> None:
    staff = faces.collection("staff")
    enrolled = staff.enroll("ada", [photo_of(1), photo_of(1, noise=2)])
    staff.forget_face("ada", enrolled.faces[0].face_id)
    assert [face.face_id for face in staff.person("ada").faces] == [enrolled.faces[1].face_id]
    with pytest.raises(library.SamefaceError) as failure:
        staff.forget_face("ada", enrolled.faces[0].face_id)
    assert failure.value.code == "face_not_found"
    staff.delete()
    with pytest.raises(library.SamefaceError) as failure:
        staff.delete()
    assert failure.value.code == "collection_not_found"


def test_people_are_listed_with_the_time_of_their_enrolment(faces: Faces) -> None:
    staff = faces.collection("staff")
    staff.enroll("ada", [photo_of(1)])
    [ada] = staff.people()
    assert ada.created_at.tzinfo is not None
    assert ada.to_dict()["created_at"].endswith("Z")
    assert abs(ada.faces[0].created_at - ada.created_at).total_seconds() < 5
