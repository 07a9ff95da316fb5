"""Recognition, detection and verification, as Double Take, Viseron and others call them."""

import base64

import httpx
import pytest

from sameface.model.store.access.audit import Wanted
from tests.api.compreface.conftest import Service
from tests.api.keys import store_of
from tests.conftest import wait_for
from tests.pictures import photo_of

DOUBLE_TAKE = {"det_prob_threshold": "0.8", "face_plugins": "undefined"}


def test_double_take_trains_recognises_and_forgets(recognition: Service) -> None:
    photo = {"file": ("0.jpg", photo_of(1), "image/jpeg")}
    trained = recognition.call("POST", "/recognition/faces", params={"subject": "ada"}, files=photo)
    assert trained.status_code == 201
    photo = {"file": ("1.jpg", photo_of(1, 7, noise=1), "image/jpeg")}
    answer = recognition.call("POST", "/recognition/recognize", params=DOUBLE_TAKE, files=photo)
    known, stranger = sorted(answer.json()["result"], key=lambda face: face["box"]["x_min"])
    assert known["subjects"][0]["subject"] == "ada"
    assert known["subjects"][0]["similarity"] >= 0.6 > stranger["subjects"][0]["similarity"]
    assert {type(side) for name, side in known["box"].items() if name != "probability"} == {int}
    nobody = {"file": ("2.jpg", photo_of(), "image/jpeg")}
    none = recognition.call("POST", "/recognition/recognize", params=DOUBLE_TAKE, files=nobody)
    assert (none.status_code, none.json()["code"]) == (400, 28)
    forgotten = recognition.call("DELETE", "/recognition/faces", params={"subject": "ada"})
    assert forgotten.json() == {"deleted": 1}


def test_options_may_be_fields_of_the_form_and_paths_may_end_in_a_slash(recognition: Service) -> None:
    assert recognition.call("GET", "/recognition/subjects/").json() == {"subjects": []}
    answer = recognition.call(
        "POST",
        "/recognition/recognize/",
        files={"file": ("a.jpg", photo_of(1, 2))},
        data={"limit": "1", "threshold": "0.6", "face_plugins": "landmarks,gender", "det_prob_threshold": ""},
    )
    [face] = answer.json()["result"]
    assert face.keys() == {"box", "landmarks", "subjects"}
    assert face["subjects"] == []


def test_plug_ins_that_are_real_answer_and_others_are_left_out(recognition: Service) -> None:
    recognition.add("ada", photo_of(1))
    [face] = recognition.recognize(
        photo_of(1), face_plugins="landmarks,gender,age,calculator,mask,pose", status="true"
    )
    assert face.keys() == {"box", "landmarks", "pose", "embedding", "execution_time", "subjects"}
    assert [len(point) for point in face["landmarks"]] == [2] * 5
    assert face["pose"].keys() == {"pitch", "roll", "yaw"}
    again = recognition.call(
        "POST", "/recognition/embeddings/recognize", json={"embeddings": [face["embedding"]]}
    ).json()["result"]
    assert again == [{"embedding": face["embedding"], "similarities": face["subjects"]}]


def test_with_several_predictions_every_subject_appears_once(recognition: Service) -> None:
    for noise in range(3):
        recognition.add("ada", photo_of(1, noise=noise))
    recognition.add("bob", photo_of(2))
    [face] = recognition.recognize(photo_of(1), prediction_count=5)
    assert [each["subject"] for each in face["subjects"]] == ["ada", "bob"]
    assert face["subjects"][0]["similarity"] > face["subjects"][1]["similarity"]


@pytest.mark.parametrize("prefix", ["", "data:image/png;base64,"])
def test_a_photo_may_be_base64_in_json(detection: Service, prefix: str) -> None:
    photo = prefix + base64.b64encode(photo_of(1, 2)).decode()
    answer = detection.call("POST", "/detection/detect?limit=0", json={"file": photo})
    assert [face.keys() for face in answer.json()["result"]] == [{"box"}, {"box"}]


def test_detection_embeds_where_asked(detection: Service) -> None:
    photo = {"file": ("a.jpg", photo_of(1))}
    answer = detection.call("POST", "/detection/detect?&face_plugins=calculator&limit=1", files=photo)
    [face] = answer.json()["result"]
    assert len(face["embedding"]) == 32


def test_one_photo_is_compared_with_all_faces_of_another(verification: Service) -> None:
    photos = {"source_image": ("a.jpg", photo_of(1)), "target_image": ("b.jpg", photo_of(2, 1, noise=1))}
    [result] = verification.call("POST", "/verification/verify", files=photos).json()["result"]
    similarities = sorted(face["similarity"] for face in result["face_matches"])
    assert similarities[0] < 0.5 < similarities[1]
    assert result["source_image_face"].keys() == {"box"}
    photos = {"source_image": ("a.jpg", photo_of(1, 2)), "target_image": ("b.jpg", photo_of(1))}
    several = verification.call("POST", "/verification/verify", files=photos)
    assert (several.status_code, several.json()["code"]) == (400, 31)


def test_embeddings_are_compared_best_first(recognition: Service, verification: Service) -> None:
    image_id = recognition.add("ada", photo_of(1))
    one, two = (
        recognition.recognize(photo_of(person), face_plugins="calculator")[0]["embedding"]
        for person in (1, 2)
    )
    ranked = verification.call(
        "POST", "/verification/embeddings/verify", json={"source": one, "targets": [two, one]}
    ).json()["result"]
    assert [each["embedding"] for each in ranked] == [one, two]
    path = f"/recognition/embeddings/faces/{image_id}/verify"
    ranked = recognition.call("POST", path, json={"embeddings": [two, one]}).json()["result"]
    assert [each["embedding"] for each in ranked] == [one, two]
    wrong = recognition.call("POST", path, json={"embeddings": [[1.0, 2.0]]})
    assert (wrong.status_code, wrong.json()["code"]) == (400, 37)


def test_decisions_are_in_the_audit(recognition: Service) -> None:
    image_id = recognition.add("ada", photo_of(1))
    recognition.recognize(photo_of(1))
    photo = {"file": ("a.jpg", photo_of(2))}
    recognition.call("POST", f"/recognition/faces/{image_id}/verify", files=photo)
    store = store_of(recognition.client)
    wanted = Wanted(collection=recognition.collection)

    def found() -> list[tuple[str, str, str | None]]:
        entries = [each.entry for each in store.audit.page(wanted, 10)]
        return [(entry.action, entry.outcome, entry.actor.route) for entry in entries]

    wait_for(lambda: len(found()) >= 4)
    faces = "/api/v1/recognition/faces"
    assert set(found()) >= {
        ("identify", "match", "/api/v1/recognition/recognize"),
        ("verify", "different_people", f"{faces}/{{image_id}}/verify"),
        ("enroll_person", "done", faces),
    }


def test_what_needs_no_key_says_how_the_server_is(compatible: httpx.Client) -> None:
    assert compatible.get("/api/v1/consistence/status").json()["status"] == "OK"
    assert compatible.get("/api/v1/config").json()["clientMaxFileSize"] == 10_000_000
