"""The faces of subjects."""

import pytest

from tests.api.compreface.conftest import Service, open_service
from tests.conftest import Serve
from tests.pictures import photo_of


def test_faces_are_listed_in_pages(recognition: Service) -> None:
    ids = [recognition.add(f"p{person}", photo_of(person)) for person in range(3)]
    page = recognition.call("GET", "/recognition/faces/?&page=1&size=2").json()
    assert page == {
        "faces": [{"image_id": ids[2], "subject": "p2"}],
        "page_number": 1,
        "page_size": 2,
        "total_pages": 2,
        "total_elements": 3,
    }
    of_one = recognition.call("GET", "/recognition/faces", params={"subject": "P1"}).json()
    assert (of_one["faces"], of_one["total_elements"]) == ([{"image_id": ids[1], "subject": "p1"}], 1)
    nobody = recognition.call("GET", "/recognition/faces", params={"subject": "x"}).json()
    assert (nobody["faces"], nobody["total_elements"], nobody["total_pages"]) == ([], 0, 0)


def test_faces_are_deleted_one_by_one_in_lists_and_by_subject(recognition: Service) -> None:
    first, second, third = (recognition.add("ada", photo_of(1, noise=noise)) for noise in range(3))
    recognition.add("bob", photo_of(2))
    one = recognition.call("DELETE", f"/recognition/faces/{first}")
    assert one.json() == {"image_id": first, "subject": "ada"}
    some = recognition.call("POST", "/recognition/faces/delete", json=[second, "nothing", second])
    assert some.json() == [{"image_id": second, "subject": "ada"}]
    assert recognition.call("DELETE", "/recognition/faces?subject=ADA").json() == {"deleted": 1}
    assert recognition.call("DELETE", "/recognition/faces?subject=ada").json() == {"deleted": 0}
    assert recognition.call("GET", "/recognition/subjects").json() == {"subjects": ["bob"]}
    assert recognition.call("DELETE", "/recognition/faces").json() == {"deleted": 1}
    assert recognition.call("GET", "/recognition/subjects").json() == {"subjects": []}
    assert recognition.call("DELETE", f"/recognition/faces/{third}").json()["code"] == 44


@pytest.mark.parametrize("path", ["/recognition/faces/", "/recognition/faces?subject="])
def test_a_forgotten_id_or_subject_does_not_delete_everybody(recognition: Service, path: str) -> None:
    recognition.add("ada", photo_of(1))
    assert recognition.call("DELETE", path).status_code == 400
    assert recognition.call("GET", "/recognition/faces").json()["total_elements"] == 1


def test_a_photo_is_compared_with_one_face(recognition: Service) -> None:
    image_id = recognition.add("ada", photo_of(1))
    answer = recognition.call(
        "POST",
        f"/recognition/faces/{image_id}/verify",
        params={"status": "True"},
        files={"file": ("a.jpg", photo_of(1, 2, noise=1))},
    ).json()
    similarities = sorted(face["similarity"] for face in answer["result"])
    assert similarities[0] < 0.5 < similarities[1]
    assert {face["subject"] for face in answer["result"]} == {"ada"}
    assert answer["plugins_versions"] == {"detector": "tiny-detector", "calculator": "tiny-recogniser"}
    assert answer["result"][0]["execution_time"].keys() == {"detector", "calculator"}


def test_a_client_that_writes_two_question_marks_is_understood(recognition: Service) -> None:
    address = "/recognition/faces?subject=Ada?det_prob_threshold=0.8"
    added = recognition.call("POST", address, files={"file": ("a.png", photo_of(1))})
    assert added.json()["subject"] == "Ada"


def test_what_the_detector_is_less_sure_of_than_asked_is_no_face(recognition: Service) -> None:
    refused = recognition.call(
        "POST",
        "/recognition/faces",
        params={"subject": "ada", "det_prob_threshold": "1"},
        files={"file": ("a.png", photo_of(1, noise=3))},
    )
    assert (refused.status_code, refused.json()["code"]) == (400, 28)


def test_images_are_crops_where_the_collection_stores_them(compatible) -> None:
    keeping, without = open_service(compatible, store_crops=True), open_service(compatible)
    for service, stored in ((keeping, True), (without, False)):
        image_id = service.add("ada", photo_of(1))
        answer = service.call("GET", f"/recognition/faces/{image_id}/img")
        assert answer.headers["content-type"] == "application/octet-stream"
        assert answer.content.startswith(b"\x89PNG") if stored else answer.content == b""
        assert service.call("GET", "/recognition/faces/nothing/img").json()["code"] == 44
        assert service.call("GET", f"/static/{service.secret}/images/{image_id}", {}).json()["code"] == 0


def test_static_images_are_shown_only_by_a_setting(serve: Serve, tmp_path) -> None:
    with serve(data=tmp_path, compatible="compreface", compreface_static_images=True) as client:
        service = open_service(client, store_crops=True)
        image_id = service.add("ada", photo_of(1))
        shown = service.call("GET", f"/static/{service.secret}/images/{image_id}", {})
        assert shown.content.startswith(b"\x89PNG")
        wrong = service.call("GET", f"/static/{'0' * 8}-0000-4000-8000-{'0' * 12}/images/{image_id}", {})
        assert (wrong.status_code, wrong.json()["code"]) == (404, 10)
