"""Faces and users, as Rekognition has them, are people of the native routes."""

import httpx
import pytest

from sameface.model.decision.thresholds import EXTRAPOLATING
from tests.api.keys import add_key, bearer, store_of
from tests.api.rekognition.conftest import Signer
from tests.pictures import draw_photo, draw_speck, encode, photo_of

ADA, ADA_AGAIN, BOB = photo_of(1), photo_of(1, noise=1), photo_of(2)


@pytest.fixture
def native(signer: Signer) -> httpx.Client:
    """A client of the native routes on the signer's collection."""
    secret, _ = add_key(store_of(signer.client), "read", "search", "write", "admin")
    signer.client.app.state.keys.expect_change()
    base = f"{str(signer.client.base_url).rstrip('/')}/v1/collections/{signer.collection}"
    with httpx.Client(base_url=base, headers=bearer(secret)) as client:
        yield client


def search(signer: Signer, photo: bytes, **options: object) -> list[dict]:
    return signer.ask("SearchFacesByImage", Image={"Bytes": photo}, **options)["FaceMatches"]


def test_a_face_without_a_user_is_a_person_of_its_own(signer: Signer, native: httpx.Client) -> None:
    [face_id] = signer.index(ADA)
    assert [person["person_id"] for person in native.get("/people").json()["items"]] == [face_id]
    answer = native.post("/identify", files={"image": ADA_AGAIN}).json()
    assert answer["results"][0]["match"]["person_id"] == face_id
    assert signer.ask("ListUsers")["Users"] == []


def test_a_face_is_given_to_a_user_and_taken_away_with_all_that_is_known_of_it(
    signer: Signer, native: httpx.Client
) -> None:
    [face_id] = signer.index(ADA, ExternalImageId="door:1")
    [before] = signer.ask("ListFaces")["Faces"]
    signer.ask("CreateUser", UserId="ada")
    signer.ask("AssociateFaces", UserId="ada", FaceIds=[face_id])
    assert signer.ask("ListFaces")["Faces"] == [before | {"UserId": "ada"}]
    [person] = native.get("/people").json()["items"]
    assert (person["person_id"], [face["face_id"] for face in person["faces"]]) == ("ada", [face_id])
    assert native.post("/identify", files={"image": ADA}).json()["results"][0]["match"]["person_id"] == "ada"
    signer.ask("DisassociateFaces", UserId="ada", FaceIds=[face_id])
    assert signer.ask("ListFaces")["Faces"] == [before]
    counts = signer.ask("DescribeCollection")
    assert (counts["FaceCount"], counts["UserCount"]) == (1, 1)
    assert len(native.get("/people").json()["items"]) == 2


def test_the_faces_of_a_deleted_user_stay_and_a_deleted_face_is_gone(
    signer: Signer, native: httpx.Client
) -> None:
    face_ids = signer.index(ADA) + signer.index(ADA_AGAIN)
    signer.ask("CreateUser", UserId="ada")
    signer.ask("AssociateFaces", UserId="ada", FaceIds=face_ids)
    signer.ask("DeleteUser", UserId="ada")
    assert {match["Face"]["FaceId"] for match in search(signer, ADA)} == set(face_ids)
    assert signer.ask("DeleteFaces", FaceIds=face_ids)["DeletedFaces"] == face_ids
    assert search(signer, ADA) == []
    assert len(native.get("/people").json()["items"]) == 0


def test_people_of_the_native_routes_are_users(signer: Signer, native: httpx.Client) -> None:
    native.post("/people", data={"person_id": "emp-17", "name": "Ada Lovelace"}, files={"images": ADA})
    assert signer.ask("ListUsers")["Users"] == [{"UserId": "emp-17", "UserStatus": "ACTIVE"}]
    [match] = signer.ask("SearchUsersByImage", Image={"Bytes": ADA_AGAIN})["UserMatches"]
    assert match["User"]["UserId"] == "emp-17"
    [face] = search(signer, ADA)
    assert face["Face"]["UserId"] == "emp-17"
    assert "BoundingBox" not in face["Face"]


def test_eighty_is_where_the_native_route_says_match(signer: Signer, native: httpx.Client) -> None:
    signer.index(ADA)
    gallery = signer.client.app.state.gallery
    threshold = gallery.choose_threshold(gallery.get_collection(signer.collection), EXTRAPOLATING)
    for noise in (1, 2, 3):
        probe = photo_of(1, noise=noise)
        [face] = native.post("/identify", files={"image": probe}).json()["results"]
        similarity = face["candidates"][0]["similarity"]
        [match] = search(signer, probe, FaceMatchThreshold=0)
        assert (match["Similarity"] >= 80) == (similarity >= threshold.value)
    assert search(signer, BOB) == []
    [unlike] = search(signer, BOB, FaceMatchThreshold=0)
    assert unlike["Similarity"] < 80


def test_boxes_and_landmarks_are_shares_of_the_upright_photo(signer: Signer) -> None:
    upright = draw_photo(1)
    turned = upright.rotate(90, expand=True)
    exif = turned.getexif()
    exif[0x0112] = 6  # shown turned by 90 degrees to the right
    photos = encode(upright), encode(turned, exif=exif)
    boxes = []
    for photo in photos:
        [face] = signer.call("DetectFaces", Image={"Bytes": photo}).json()["FaceDetails"]
        boxes.append({side: round(share, 2) for side, share in face["BoundingBox"].items()})
        assert [mark["Type"] for mark in face["Landmarks"]][:3] == ["eyeLeft", "eyeRight", "nose"]
        assert all(0 < mark[axis] < 1 for mark in face["Landmarks"] for axis in "XY")
    assert boxes == [{"Left": 0.15, "Top": 0.4, "Width": 0.15, "Height": 0.2}] * 2


def test_a_filter_says_why_a_face_is_left_out(signer: Signer) -> None:
    answer = signer.ask("IndexFaces", Image={"Bytes": encode(draw_speck())})
    assert answer["FaceRecords"] == []
    assert "SMALL_BOUNDING_BOX" in answer["UnindexedFaces"][0]["Reasons"]


def test_the_faces_of_one_user_are_all_found(signer: Signer) -> None:
    face_ids = [face_id for noise in range(4) for face_id in signer.index(photo_of(1, noise=noise))]
    signer.ask("CreateUser", UserId="ada")
    signer.ask("AssociateFaces", UserId="ada", FaceIds=face_ids[:3])
    found = search(signer, ADA)
    assert {match["Face"]["FaceId"] for match in found} == set(face_ids)
    assert found[0]["Face"]["FaceId"] == face_ids[0]
    assert len(search(signer, ADA, MaxFaces=2)) == 2
    similar = signer.ask("SearchFaces", FaceId=face_ids[0])["FaceMatches"]
    assert {match["Face"]["FaceId"] for match in similar} == set(face_ids[1:])
