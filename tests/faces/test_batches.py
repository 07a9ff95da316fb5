"""Batches go in and come out of both in order."""

import pytest

from tests.faces.library import Faces, Library
from tests.pictures import photo_of


def test_a_batch_of_probes_is_answered_one_by_one_and_in_order(library: Library, faces: Faces) -> None:
    staff = faces.collection("staff")
    [face] = faces.embed(photo_of(1)).faces
    staff.enroll("ada", [photo_of(1)], name="Ada")
    probes = [
        ("photo", photo_of(1, noise=4)),
        ("nobody", photo_of()),
        ("text", b"text"),
        ("gone", "nowhere.jpg"),
    ]
    probes += [("stranger", photo_of(2)), ("embedding", face.embedding), ("embedding", [0.0])]
    answers = list(staff.identify_many(iter(probes), limit=1))
    assert [answer.id for answer in answers] == [name for name, _ in probes]
    codes = [answer.error.code for answer in answers if isinstance(answer, library.BatchFailed)]
    assert codes == ["no_face_found", "unsupported_image", "unreadable_image", "invalid_request"]
    found = [answer.results[0].match for answer in answers if isinstance(answer, library.BatchIdentified)]
    assert [match and match.name for match in found] == ["Ada", None, "Ada"]
    assert list(answers[0].to_dict()) == ["id", "results"]
    assert answers[1].to_dict()["error"]["code"] == "no_face_found"


def test_a_batch_of_embeddings_alone_is_answered_as_one_of_photos_is(faces: Faces) -> None:
    staff = faces.collection("staff")
    [face] = faces.embed(photo_of(1)).faces
    staff.enroll("ada", [photo_of(1)], name="Ada")
    alike = [face.embedding, list(face.embedding), [2 * number for number in face.embedding]]
    broken = [[float("nan")] * len(face.embedding), [0.0] * len(face.embedding)]
    found = list(staff.identify_many((str(n), probe) for n, probe in enumerate(alike + broken)))
    assert [answer.id for answer in found] == ["0", "1", "2", "3", "4"]
    assert [answer.results[0].match.name for answer in found[:3]] == ["Ada"] * 3
    assert [answer.results[0].normalised for answer in found[:3]] == [False, False, True]
    assert [answer.error.code for answer in found[3:]] == ["invalid_request"] * 2
    assert list(staff.identify_many([("0", face.embedding)], exact=True)) == found[:1]
    short = list(staff.identify_many([("1", [1.0, 2.0]), ("2", [1.0, 2.0])]))
    assert [(answer.id, answer.error.code) for answer in short] == [
        ("1", "invalid_request"),
        ("2", "invalid_request"),
    ]


def test_a_batch_enrols_people_and_adds_faces_to_those_who_are_known(library: Library, faces: Faces) -> None:
    staff = faces.collection("staff")
    entries = [
        library.EnrollEntry("1", photo_of(1), "ada", "Ada", {"room": 7}),
        library.EnrollEntry("2", photo_of(1, noise=2), "ada"),
        library.EnrollEntry("3", photo_of(2)),
        library.EnrollEntry("4", photo_of()),
        library.EnrollEntry("5", photo_of(3), "no id"),
        library.EnrollEntry("6", photo_of(3), "cleo", metadata={"a": float("nan")}),
    ]
    answers = list(staff.enroll_many(entry for entry in entries))
    assert [answer.id for answer in answers] == ["1", "2", "3", "4", "5", "6"]
    assert [answer.person_id for answer in answers[:2]] == ["ada", "ada"]
    codes = [answer.error.code for answer in answers[3:]]
    assert codes == ["no_face_found", "invalid_request", "invalid_request"]
    assert (staff.describe().people, staff.describe().faces) == (2, 3)
    assert staff.person("ada").metadata == {"room": 7}


def test_a_batch_for_a_collection_that_is_not_there_or_a_rate_that_is_not_supported_fails_as_a_whole(
    library: Library, faces: Faces
) -> None:
    staff = faces.collection("staff")
    with pytest.raises(library.SamefaceError) as failure:
        list(staff.identify_many([("1", photo_of(1))]))
    assert failure.value.code == "collection_not_found"
    staff.enroll("ada", [photo_of(1)])
    with pytest.raises(library.SamefaceError) as failure:
        list(staff.identify_many([("1", photo_of(1))], target_fpir=0.1))
    assert failure.value.code == "not_calibrated"


def test_no_probes_are_no_answers(faces: Faces) -> None:
    assert list(faces.collection("staff").identify_many([])) == []
