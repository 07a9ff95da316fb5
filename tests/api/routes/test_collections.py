"""Collections, as a client sees them."""

import httpx
import pytest

from tests.api.collections import enrol, identify
from tests.api.problems import expect
from tests.pictures import photo_of


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
