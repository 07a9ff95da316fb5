"""Collections and the people in them, as a client sees them."""

import base64
import itertools
import json

import httpx
import pytest

from tests.api.test_bad_input import expect
from tests.networks import DIMENSION
from tests.pictures import draw_photo, encode, photo_of

NUMBERS = itertools.count()


@pytest.fixture
def staff(client: httpx.Client) -> str:
    """The address of a new collection."""
    address = f"/v1/collections/staff-{next(NUMBERS)}"
    assert client.put(address).status_code == 201
    return address


def enrol(
    client: httpx.Client, staff: str, *photos: bytes, headers: dict | None = None, **fields: str
) -> httpx.Response:
    files = [("images", photo) for photo in photos]
    return client.post(f"{staff}/people", files=files, data=fields, headers=headers)


def identify(client: httpx.Client, staff: str, photo: bytes, **fields: object) -> dict:
    return client.post(f"{staff}/identify", files={"image": photo}, data=fields).json()


def embedding_of(client: httpx.Client, photo: bytes) -> list[float]:
    return client.post("/v1/embed", files={"image": photo}).json()["faces"][0]["embedding"]


# Collections.


def test_a_collection_is_made_once_and_is_the_same_again(client: httpx.Client, staff: str) -> None:
    assert client.put(staff).status_code == 200
    expect(client.put(staff, json={"store_crops": True}), 409, "already_exists")
    answer = client.get(staff).json()
    assert (answer["people"], answer["faces"], answer["model"]) == (0, 0, "tiny-recogniser")
    assert answer["name"] in [
        item["name"] for item in client.get("/v1/collections?limit=1000").json()["items"]
    ]


def test_collections_are_listed_in_pages(client: httpx.Client, staff: str) -> None:
    client.put(f"{staff}-b")
    names, cursor = [], ""
    while cursor is not None:
        page = client.get("/v1/collections", params={"limit": 1, "cursor": cursor}).json()
        names += [item["name"] for item in page["items"]]
        cursor = page["next_cursor"]
    assert names == sorted(names)
    assert len(set(names)) == len(names) >= 2


def test_a_deleted_collection_is_gone(client: httpx.Client, staff: str) -> None:
    enrol(client, staff, photo_of(1), person_id="ada")
    assert client.delete(staff).status_code == 204
    expect(client.get(staff), 404, "collection_not_found")
    expect(client.delete(staff), 404, "collection_not_found")
    client.put(staff)
    assert identify(client, staff, photo_of(1))["results"][0]["candidates"] == []


def test_an_unknown_calibration_is_refused(client: httpx.Client, staff: str) -> None:
    expect(client.put(f"{staff}-x", json={"calibration": "nobody"}), 404, "calibration_not_found")


@pytest.mark.parametrize("name", ["a b", "a%2Fb", "x" * 129, "ä"])
def test_a_strange_name_is_refused(client: httpx.Client, name: str) -> None:
    response = client.put(f"/v1/collections/{name}")
    assert response.json()["code"] in ("invalid_request", "not_found")
    assert response.status_code in (404, 422)


# People.


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
    expect(enrol(client, staff, photo_of(), b"no picture"), 422, "no_face_found")
    assert client.get(staff).json()["people"] == 0


def test_a_known_person_is_not_enrolled_again(client: httpx.Client, staff: str) -> None:
    enrol(client, staff, photo_of(1), person_id="ada")
    expect(enrol(client, staff, photo_of(2), person_id="ada"), 409, "already_exists")


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


# Verify against an enrolled person.


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


# Identify.


def test_every_face_of_a_photo_gets_its_result(client: httpx.Client, staff: str) -> None:
    enrol(client, staff, photo_of(1), person_id="ada")
    enrol(client, staff, photo_of(2), person_id="bob")
    results = identify(client, staff, photo_of(1, 2, 3))["results"]
    found = {
        result["face"]["box"]["left"]: result["match"] and result["match"]["person_id"] for result in results
    }
    assert found == {48: "ada", 128: "bob", 208: None}


@pytest.mark.parametrize("fusion", ["max", "mean"])
def test_a_person_is_one_candidate_however_many_faces(client: httpx.Client, staff: str, fusion: str) -> None:
    for person in range(3):
        enrol(client, staff, *(photo_of(person, noise=noise) for noise in range(4)), person_id=f"p{person}")
    [result] = identify(client, staff, photo_of(1, noise=8), fusion=fusion, limit=2)["results"]
    assert len(result["candidates"]) == 2
    assert result["match"]["person_id"] == "p1"


def test_the_callers_threshold_decides_what_a_match_is(client: httpx.Client, staff: str) -> None:
    enrol(client, staff, photo_of(1), person_id="ada")
    for threshold, matched in ((-1, True), (1, False)):
        [result] = identify(client, staff, photo_of(2), threshold=threshold)["results"]
        assert (result["match"] is not None) is matched
        assert result["candidates"][0]["person_id"] == "ada"


@pytest.mark.parametrize(
    "fields", [{"limit": 0}, {"limit": 1_000_000}, {"fusion": "median"}, {"threshold": "nan"}]
)
def test_a_question_that_does_not_fit(client: httpx.Client, staff: str, fields: dict) -> None:
    response = client.post(f"{staff}/identify", files={"image": photo_of(1)}, data=fields)
    expect(response, 422, "invalid_request")


def test_a_rate_needs_a_calibration_and_a_photo_needs_a_face(client: httpx.Client, staff: str) -> None:
    rate = client.post(f"{staff}/identify", files={"image": photo_of(1)}, data={"target_fpir": 0.01})
    expect(rate, 422, "not_calibrated")
    expect(client.post(f"{staff}/identify", files={"image": photo_of()}), 422, "no_face_found")
    expect(
        client.post("/v1/collections/nobody/identify", files={"image": photo_of(1)}),
        404,
        "collection_not_found",
    )


# What must not happen.


def test_crops_are_kept_only_where_the_owner_asked(client: httpx.Client, staff: str) -> None:
    client.put(f"{staff}-crops", json={"store_crops": True})
    database = client.app.state.gallery.store._database
    for address, kept in ((staff, False), (f"{staff}-crops", True)):
        person_id = f"of-{address.rpartition('/')[2]}"
        enrol(client, address, photo_of(1), person_id=person_id)
        with database.reading() as connection:
            [crop] = connection.exec_driver_sql(
                "SELECT crop FROM faces JOIN people ON people.key = person WHERE person_id = ?", (person_id,)
            ).scalars()
        assert (crop is not None) is kept


def test_reading_and_writing_are_two_scopes(serve) -> None:
    from api.keys import make_key

    keys = {scopes: make_key(scopes) for scopes in ("read", "write")}
    with serve(api_keys=",".join(entry for _, entry in keys.values())) as client:
        headers = {scopes: {"Authorization": f"Bearer {secret}"} for scopes, (secret, _) in keys.items()}
        expect(client.put("/v1/collections/guarded", headers=headers["read"]), 403, "forbidden")
        assert client.put("/v1/collections/guarded", headers=headers["write"]).status_code in (200, 201)
        expect(client.get("/v1/collections/guarded", headers=headers["write"]), 403, "forbidden")
        assert client.get("/v1/collections/guarded", headers=headers["read"]).status_code == 200


def test_a_full_disk_refuses_writes_and_answers_searches(serve, data, tmp_path) -> None:
    models = {"recognizer": data / "models" / "recogniser", "detector": data / "models" / "detector"}
    with serve(data=tmp_path, **models) as client:
        client.put("/v1/collections/small")
        enrol(client, "/v1/collections/small", photo_of(1), person_id="ada")
        database = client.app.state.gallery.store._database
        with database.writing() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
            connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
        big = json.dumps({"a": "x" * 15_000})
        refused = enrol(client, "/v1/collections/small", photo_of(2), metadata=big)
        expect(refused, 507, "storage_full")
        assert (
            identify(client, "/v1/collections/small", photo_of(1))["results"][0]["match"]["person_id"]
            == "ada"
        )


def test_what_was_enrolled_is_there_after_a_restart(serve, data, tmp_path) -> None:
    models = {"recognizer": data / "models" / "recogniser", "detector": data / "models" / "detector"}
    with serve(data=tmp_path, **models) as client:
        client.put("/v1/collections/kept")
        enrol(client, "/v1/collections/kept", encode(draw_photo(1), "WEBP", lossless=True), person_id="ada")
    with serve(data=tmp_path, **models) as client:
        assert (
            identify(client, "/v1/collections/kept", photo_of(1))["results"][0]["match"]["person_id"] == "ada"
        )
