"""The verify route, as a client sees it."""

import base64

import httpx
import pytest

from tests.api.collections import enrol
from tests.api.problems import expect
from tests.pictures import photo_of


def verify(client: httpx.Client, probe: bytes, reference: bytes, **fields: object) -> httpx.Response:
    return client.post("/v1/verify", files={"probe": probe, "reference": reference}, data=fields)


def test_two_photos_of_one_person_are_the_same_person(client: httpx.Client) -> None:
    response = verify(client, photo_of(1), photo_of(1, noise=7))
    assert response.status_code == 200
    assert response.json()["same_person"] is True


def test_photos_of_two_people_are_not(client: httpx.Client) -> None:
    assert verify(client, photo_of(1), photo_of(2)).json()["same_person"] is False


def test_an_uncalibrated_bundle_answers_with_its_published_threshold(client: httpx.Client) -> None:
    answer = verify(client, photo_of(1), photo_of(1)).json()
    assert answer["threshold"] == 0.5
    assert answer["model"] == "tiny-recogniser"
    assert [answer[key] for key in ("calibration", "target_fmr", "estimated_fmr")] == [None, None, None]
    assert answer["extrapolated"] is False


def test_the_answer_shows_what_was_seen(client: httpx.Client) -> None:
    answer = verify(client, photo_of(1, 2), photo_of(1)).json()
    assert (answer["probe"]["faces_found"], answer["reference"]["faces_found"]) == (2, 1)
    face = answer["reference"]["face"]
    assert face["box"] == {"left": 48, "top": 96, "width": 48, "height": 48}
    assert len(face["landmarks"]) == 5
    assert set(face["quality"]) == {"score", "sharpness", "brightness", "yaw", "size", "issues"}
    assert set(answer["timings_ms"]) == {"decode", "detect", "align", "embed", "total"}


def test_json_with_base64_is_the_same_request(client: httpx.Client) -> None:
    body = {
        name: {"base64": base64.b64encode(photo).decode()}
        for name, photo in (("probe", photo_of(1)), ("reference", photo_of(1, noise=7)))
    }
    in_json = client.post("/v1/verify", json=body).json()
    in_form = verify(client, photo_of(1), photo_of(1, noise=7)).json()
    in_json.pop("timings_ms"), in_form.pop("timings_ms")
    assert in_json == in_form


@pytest.mark.parametrize(("threshold", "same_person"), [(-1, True), (1, False)])
def test_the_callers_threshold_decides(client: httpx.Client, threshold: float, same_person: bool) -> None:
    answer = verify(client, photo_of(1), photo_of(2), threshold=threshold).json()
    assert (answer["same_person"], answer["threshold"]) == (same_person, threshold)


def test_the_prominent_face_is_taken(client: httpx.Client) -> None:
    """Of three equal faces the second is nearest the photo's centre."""
    answer = verify(client, photo_of(1, 2, 3), photo_of(2)).json()
    assert answer["probe"]["face"]["box"]["left"] == 128
    assert answer["same_person"] is True


# Against an enrolled person.


def test_a_photo_is_verified_against_the_closest_face_of_an_enrolled_person(
    client: httpx.Client, staff: str
) -> None:
    faces = enrol(client, staff, photo_of(2), photo_of(1), person_id="ada").json()["faces"]
    fields = {"collection": staff.rpartition("/")[2], "person_id": "ada"}
    for photo, same_person in ((photo_of(1, noise=3), True), (photo_of(5), False)):
        answer = client.post("/v1/verify", files={"probe": photo}, data=fields).json()
        assert answer["same_person"] is same_person
        assert answer["reference"]["person_id"] == "ada"
    answer = client.post("/v1/verify", files={"probe": photo_of(1)}, data=fields).json()
    assert answer["reference"] == {"person_id": "ada", "face_id": faces[1]["face_id"]}


def test_a_reference_is_a_photo_or_a_person_and_both_must_be_known(client: httpx.Client, staff: str) -> None:
    name, photo = staff.rpartition("/")[2], {"probe": photo_of(1)}
    for fields in ({"collection": name}, {"person_id": "ada"}):
        expect(client.post("/v1/verify", files=photo, data=fields), 422, "invalid_request")
    both = client.post(
        "/v1/verify", files=photo | {"reference": photo_of(1)}, data={"collection": name, "person_id": "a"}
    )
    expect(both, 422, "invalid_request")
    nobody = {"collection": name, "person_id": "nobody"}
    expect(client.post("/v1/verify", files=photo, data=nobody), 404, "person_not_found")
    nowhere = {"collection": "nowhere", "person_id": "ada"}
    expect(client.post("/v1/verify", files=photo, data=nowhere), 404, "collection_not_found")
