"""The people in a collection, as a client sees them."""

import base64

import httpx
import pytest

from tests.api.collections import embedding_of, enrol, identify
from tests.api.problems import expect
from tests.networks import DIMENSION
from tests.pictures import photo_of


def test_a_person_is_enrolled_and_found(client: httpx.Client, staff: str) -> None:
    answer = enrol(
        client, staff, photo_of(1), photo_of(1, noise=4), person_id="ada", name="Ada", metadata='{"a": 1}'
    )
    assert answer.status_code == 201
    body = answer.json()
    assert (body["person_id"], len(body["faces"]), body["rejected"], body["warnings"]) == ("ada", 2, [], [])
    person = client.get(f"{staff}/people/ada").json()
    assert (person["name"], person["metadata"]) == ("Ada", {"a": 1})
    assert [face["face_id"] for face in person["faces"]] == [face["face_id"] for face in body["faces"]]
    found = identify(client, staff, photo_of(1, noise=9))
    assert found["results"][0]["match"]["person_id"] == "ada"
    assert (found["gallery_size"], found["gallery_faces"]) == (1, 2)
    assert found["threshold"] == 0.5
    assert found["target_fpir"] is None


def test_a_photo_that_does_not_fit_is_rejected_and_the_others_are_taken(
    client: httpx.Client, staff: str
) -> None:
    answer = enrol(client, staff, photo_of(), photo_of(1), b"no picture").json()
    assert [(item["image"], item["code"]) for item in answer["rejected"]] == [
        (0, "no_face_found"),
        (2, "unsupported_image"),
    ]
    assert [face["image"] for face in answer["faces"]] == [1]
    assert answer["person_id"]


def test_nothing_enrolled_is_the_first_rejection(client: httpx.Client, staff: str) -> None:
    refused = enrol(client, staff, photo_of(), b"no picture")
    expect(refused, 422, "no_face_found")
    assert [(item["image"], item["code"]) for item in refused.json()["rejected"]] == [
        (0, "no_face_found"),
        (1, "unsupported_image"),
    ]
    assert client.get(staff).json()["people"] == 0


def test_a_known_person_is_not_enrolled_again(client: httpx.Client, staff: str) -> None:
    enrol(client, staff, photo_of(1), person_id="ada")
    problem = expect(enrol(client, staff, photo_of(2), person_id="ada"), 409, "already_exists")
    assert "POST .../people/ada/faces" in problem["detail"]


def test_somebody_enrolled_from_a_group_photo_is_a_warning(client: httpx.Client, staff: str) -> None:
    [warning] = enrol(client, staff, photo_of(1, 2), person_id="ada").json()["warnings"]
    assert (warning["code"], warning["faces_found"]) == ("several_faces", 2)
    assert enrol(client, staff, photo_of(3), person_id="bob").json()["warnings"] == []


def test_oddities_are_reported_and_enrolled_all_the_same(client: httpx.Client, staff: str) -> None:
    enrol(client, staff, photo_of(1), person_id="ada")
    same = enrol(client, staff, photo_of(1), person_id="eve").json()["warnings"]
    assert {(item["code"], item["person_id"]) for item in same} == {
        ("same_photo", "ada"),
        ("looks_like_another_person", "ada"),
    }
    files = [("images", photo_of(2))]
    unlike = client.post(f"{staff}/people/ada/faces", files=files).json()["warnings"]
    assert [item["code"] for item in unlike] == ["unlike_own_faces"]
    assert client.get(staff).json()["faces"] == 3


def test_people_are_listed_renamed_and_forgotten(client: httpx.Client, staff: str) -> None:
    for number in range(3):
        enrol(client, staff, photo_of(number), person_id=f"p{number}", metadata='{"kept": true}')
    page = client.get(f"{staff}/people", params={"limit": 2}).json()
    rest = client.get(f"{staff}/people", params={"limit": 2, "cursor": page["next_cursor"]}).json()
    assert [item["person_id"] for item in page["items"] + rest["items"]] == ["p0", "p1", "p2"]
    assert rest["next_cursor"] is None
    renamed = client.patch(f"{staff}/people/p0", json={"name": "Grace"}).json()
    assert (renamed["name"], renamed["metadata"]) == ("Grace", {"kept": True})
    assert identify(client, staff, photo_of(0))["results"][0]["match"]["name"] == "Grace"
    assert client.delete(f"{staff}/people/p0").status_code == 204
    expect(client.get(f"{staff}/people/p0"), 404, "person_not_found")
    candidates = identify(client, staff, photo_of(0))["results"][0]["candidates"]
    assert "p0" not in [candidate["person_id"] for candidate in candidates]


def test_a_face_is_added_and_forgotten(client: httpx.Client, staff: str) -> None:
    enrol(client, staff, photo_of(1), person_id="ada")
    added = client.post(f"{staff}/people/ada/faces", files=[("images", photo_of(1, noise=2))]).json()
    address = f"{staff}/people/ada/faces/{added['faces'][0]['face_id']}"
    assert client.delete(address).status_code == 204
    expect(client.delete(address), 404, "face_not_found")
    assert client.get(staff).json()["faces"] == 1
    expect(client.post(f"{staff}/people/bob/faces", files=[("images", photo_of(2))]), 404, "person_not_found")


def test_embeddings_do_what_photos_do(client: httpx.Client, staff: str) -> None:
    body = {"person_id": "ada", "embeddings": [embedding_of(client, photo_of(1))], "model": "tiny-recogniser"}
    assert client.post(f"{staff}/people", json=body).status_code == 201
    probe = {"embedding": [3 * number for number in embedding_of(client, photo_of(1, noise=5))]}
    [result] = client.post(f"{staff}/identify", json=probe).json()["results"]
    assert result["match"]["person_id"] == "ada"
    assert result["face"] is None
    assert result["match"]["similarity"] <= 1
    assert result["normalised"] is True
    long = {"person_id": "eve", "embeddings": [[2 * number for number in embedding_of(client, photo_of(2))]]}
    warnings = client.post(f"{staff}/people", json=long).json()["warnings"]
    assert [item["code"] for item in warnings] == ["embedding_normalised"]


@pytest.mark.parametrize("embedding", [[], [0] * DIMENSION, [1] * (DIMENSION - 1), ["x"] * DIMENSION])
def test_numbers_that_are_no_embedding_are_refused(client: httpx.Client, staff: str, embedding: list) -> None:
    expect(client.post(f"{staff}/identify", json={"embedding": embedding}), 422, "invalid_request")
    expect(client.post(f"{staff}/people", json={"embeddings": [embedding]}), 422, "invalid_request")


def test_an_embedding_of_another_model_is_refused(client: httpx.Client, staff: str) -> None:
    probe = {"embedding": [1] * DIMENSION, "model": "arcface"}
    expect(client.post(f"{staff}/identify", json=probe), 409, "model_mismatch")


def test_a_retry_gets_the_first_answer_and_enrols_nobody(client: httpx.Client, staff: str) -> None:
    headers = {"Idempotency-Key": "once"}
    first = enrol(client, staff, photo_of(1), headers=headers)
    again = enrol(client, staff, photo_of(1), headers=headers)
    assert (again.status_code, again.json()) == (201, first.json())
    assert client.get(staff).json()["people"] == 1
    expect(enrol(client, staff, photo_of(2), headers=headers), 409, "idempotency_key_reused")


BAD_PEOPLE = {
    "nothing": {},
    "an id with a slash": {"person_id": "a/b", "images": []},
    "metadata that is a list": {"metadata": [1]},
    "large metadata": {"metadata": {"a": "x" * 20_000}},
    "a long name": {"name": "x" * 300},
}


@pytest.mark.parametrize("fields", BAD_PEOPLE.values(), ids=BAD_PEOPLE.keys())
def test_a_person_that_does_not_fit(client: httpx.Client, staff: str, fields: dict) -> None:
    photo = {"images": [{"base64": base64.b64encode(photo_of(1)).decode()}]} if fields else {}
    expect(client.post(f"{staff}/people", json=photo | fields), 422, "invalid_request")


def test_metadata_in_a_form_is_json(client: httpx.Client, staff: str) -> None:
    expect(enrol(client, staff, photo_of(1), metadata="{"), 422, "invalid_request")


def test_more_images_than_the_limit_are_refused_as_they_come_in(client: httpx.Client, staff: str) -> None:
    expect(enrol(client, staff, *[photo_of(1)] * 17), 413, "too_many_images")
    expect(enrol(client, staff, *[b"x"] * 10_000), 413, "too_many_images")
    for count in (17, 10_000):
        body = {"images": [{"base64": "eA=="}] * count}
        expect(client.post(f"{staff}/people", json=body), 413, "too_many_images")


def test_a_retry_after_a_person_was_forgotten_shows_nobody(client: httpx.Client, staff: str) -> None:
    retry = {"Idempotency-Key": "once"}
    assert enrol(client, staff, photo_of(1), headers=retry, person_id="ada").status_code == 201
    client.delete(f"{staff}/people/ada")
    expect(enrol(client, staff, photo_of(1), headers=retry, person_id="ada"), 404, "person_not_found")
    assert client.get(staff).json()["people"] == 0
