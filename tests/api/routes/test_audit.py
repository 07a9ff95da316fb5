"""The audit, as a client sees it."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from tests.api.collections import enrol, identify
from tests.api.problems import expect
from tests.conftest import Serve, wait_for
from tests.pictures import photo_of


def entries_of(client: httpx.Client, collection: str, **wanted: object) -> list[dict]:
    """The entries about a collection, oldest first."""
    response = client.get("/v1/audit", params={"collection": collection, **wanted})
    assert response.status_code == 200, response.text
    return response.json()["items"][::-1]


def decisions_of(client: httpx.Client, collection: str, count: int) -> list[dict]:
    """The decisions about a collection, once there are `count`."""

    def found() -> list[dict]:
        return [each for each in entries_of(client, collection) if each["action"] in ("verify", "identify")]

    wait_for(lambda: len(found()) >= count)
    assert len(found()) == count
    return found()


@pytest.fixture
def name(staff: str) -> str:
    """The collection's name."""
    return staff.rpartition("/")[2]


def test_changes_are_listed_newest_first_page_by_page(client: httpx.Client, staff: str, name: str) -> None:
    enrol(client, staff, photo_of(1), person_id="ada")
    client.patch(f"{staff}/people/ada", json={"name": "Ada Lovelace"})
    client.delete(f"{staff}/people/ada")
    found, cursor = [], ""
    while cursor is not None:
        page = client.get("/v1/audit", params={"collection": name, "limit": 2, "cursor": cursor}).json()
        found += page["items"]
        cursor = page["next_cursor"]
    assert [(each["action"], each["person_id"]) for each in found] == [
        ("forget_person", "ada"),
        ("update_person", "ada"),
        ("enroll_person", "ada"),
        ("create_collection", None),
    ]
    assert "Lovelace" not in json.dumps(found)


def test_a_failed_change_is_no_entry(client: httpx.Client, staff: str, name: str) -> None:
    enrol(client, staff, photo_of(1), person_id="ada")
    expect(enrol(client, staff, photo_of(1), person_id="ada"), 409, "already_exists")
    assert [each["action"] for each in entries_of(client, name)] == ["create_collection", "enroll_person"]


def test_every_decision_about_a_collection_is_an_entry(client: httpx.Client, staff: str, name: str) -> None:
    enrol(client, staff, photo_of(1), person_id="ada")
    enrol(client, staff, photo_of(2), person_id="bob")
    answer = identify(client, staff, photo_of(1, 3))
    body = {"collection": name, "person_id": "bob"}
    verified = client.post("/v1/verify", files={"probe": photo_of(2)}, data=body).json()
    decisions = decisions_of(client, name, 3)
    by_outcome = {each["outcome"]: each for each in decisions}
    assert set(by_outcome) == {"match", "unknown", "same_person"}
    match = next(each["match"] for each in answer["results"] if each["match"])
    entry = by_outcome["match"]
    assert (entry["person_id"], entry["similarity"], entry["threshold"]) == (
        "ada",
        match["similarity"],
        answer["threshold"],
    )
    assert entry["details"]["face_ids"] == [match["face_id"]]
    assert entry["started_at"] <= entry["time"]
    assert entry["revision"] == 2
    assert by_outcome["unknown"]["person_id"] is None
    same = by_outcome["same_person"]
    assert (same["person_id"], same["similarity"]) == ("bob", verified["similarity"])
    assert {each["model"] for each in decisions} == {verified["model"]}


def test_every_probe_of_a_batch_is_an_entry(client: httpx.Client, staff: str, name: str) -> None:
    enrol(client, staff, photo_of(1), person_id="ada")
    files = [("images", (f"{n}.png", photo_of(1 + n % 2))) for n in range(6)]
    assert client.post(f"{staff}/identify/batch", files=files).status_code == 200
    outcomes = [each["outcome"] for each in decisions_of(client, name, 6)]
    assert sorted(outcomes) == ["match"] * 3 + ["unknown"] * 3


def test_two_photos_that_are_compared_are_an_entry_without_a_collection(client: httpx.Client) -> None:
    since = (datetime.now(UTC) - timedelta(seconds=1)).isoformat()
    client.post("/v1/verify", files={"probe": photo_of(1), "reference": photo_of(5)})

    def found() -> list[dict]:
        items = client.get("/v1/audit", params={"since": since}).json()["items"]
        return [each for each in items if each["action"] == "verify" and each["collection"] is None]

    wait_for(lambda: bool(found()))
    assert found()[0]["outcome"] == "different_people"


def test_entries_are_found_by_person_and_time(client: httpx.Client, staff: str, name: str) -> None:
    enrol(client, staff, photo_of(1), person_id="ada")
    enrol(client, staff, photo_of(2), person_id="bob")
    assert [each["person_id"] for each in entries_of(client, name, person_id="bob")] == ["bob"]
    now = datetime.now(UTC)
    assert entries_of(client, name, since=(now + timedelta(minutes=1)).isoformat()) == []
    assert len(entries_of(client, name, until=(now + timedelta(minutes=1)).isoformat())) == 3
    assert entries_of(client, name, caller="nobody") == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"since": "yesterday"},
        {"since": "2026-11-18T10:00:00"},
        {"cursor": "x"},
        {"limit": 0},
        {"limit": 1001},
        {"who": "ada"},
        {"person_id": "x" * 129},
    ],
)
def test_a_wrong_question_is_refused(client: httpx.Client, wrong: dict) -> None:
    expect(client.get("/v1/audit", params=wrong), 422, "invalid_request")


def find_match(client: httpx.Client, name: str) -> dict:
    enrol(client, f"/v1/collections/{name}", photo_of(1), person_id="ada")
    identify(client, f"/v1/collections/{name}", photo_of(1))
    return decisions_of(client, name, 1)[0]


def review(client: httpx.Client, entry: dict, reviewer: str, *, confirmed: bool = True) -> httpx.Response:
    body = {"reviewer": reviewer, "confirmed": confirmed}
    return client.post(f"/v1/audit/{entry['entry_id']}/review", json=body)


def test_a_match_is_confirmed_by_as_many_people_as_its_collection_asks_for(client: httpx.Client) -> None:
    made = client.put("/v1/collections/border", json={"reviewers": 2})
    assert made.json()["reviewers"] == 2
    entry = find_match(client, "border")
    assert (entry["review_status"], entry["reviews"]) == ("pending", [])
    first = review(client, entry, "officer-1")
    assert (first.status_code, first.json()["review_status"]) == (201, "pending")
    expect(review(client, entry, "officer-1"), 409, "already_exists")
    second = review(client, entry, "officer-2").json()
    assert second["review_status"] == "confirmed"
    assert [each["reviewer"] for each in second["reviews"]] == ["officer-1", "officer-2"]
    listed = entries_of(client, "border")
    assert listed[-3] == second
    assert [(each["action"], each["outcome"], each["reviewed"]) for each in listed[-2:]] == [
        ("review", "confirmed", entry["entry_id"])
    ] * 2


def test_one_person_who_disagrees_rejects_a_match(client: httpx.Client, name: str) -> None:
    entry = find_match(client, name)
    assert entry["review_status"] is None
    assert review(client, entry, "officer-1").json()["review_status"] == "confirmed"
    assert review(client, entry, "officer-2", confirmed=False).json()["review_status"] == "rejected"


def test_only_decisions_about_a_person_are_reviewed(client: httpx.Client, staff: str, name: str) -> None:
    [made] = entries_of(client, name)
    expect(review(client, made, "officer-1"), 422, "invalid_request")
    identify(client, staff, photo_of(3))
    [unknown] = decisions_of(client, name, 1)
    expect(review(client, unknown, "officer-1"), 422, "invalid_request")
    expect(review(client, {"entry_id": "nowhere.1"}, "officer-1"), 404, "entry_not_found")
    expect(review(client, made, "not an id"), 422, "invalid_request")
    expect(client.post(f"/v1/audit/{made['entry_id']}/review", json={}), 422, "invalid_request")


def test_a_collection_asks_for_two_reviewers_at_most_and_always_for_the_same(client: httpx.Client) -> None:
    expect(client.put("/v1/collections/many", json={"reviewers": 3}), 422, "invalid_request")
    assert client.put("/v1/collections/one", json={"reviewers": 1}).status_code == 201
    expect(client.put("/v1/collections/one", json={"reviewers": 0}), 409, "already_exists")


def test_decisions_are_written_when_the_server_stops_and_none_where_0_days_are_kept(
    serve: Serve, tmp_path: Path
) -> None:
    for days, count in ((1, 1), (0, 1)):  # the second server adds nothing
        with serve(data=tmp_path, audit_days=days) as client:
            client.put("/v1/collections/staff")
            identify(client, "/v1/collections/staff", photo_of(1))
        with serve(data=tmp_path, audit_days=days) as client:
            decisions_of(client, "staff", count)


def test_a_key_is_named_in_its_entries_and_sees_the_audit_of_its_collections_alone(
    serve: Serve, tmp_path: Path
) -> None:
    with serve(data=tmp_path) as client:
        chief = client.post("/v1/keys", json={"name": "chief", "scopes": ["admin"]}).json()
        client.headers["Authorization"] = f"Bearer {chief['secret']}"
        for name in ("staff", "guests"):
            assert client.put(f"/v1/collections/{name}").status_code == 201
        body = {"name": "desk", "scopes": ["admin"], "collections": ["staff"]}
        desk = client.post("/v1/keys", json=body).json()
        [made] = entries_of(client, "staff")
        assert (made["caller"], made["route"]) == (chief["key_id"], "/v1/collections/{collection}")
        assert made["request_id"]
        items = client.get("/v1/audit", params={"caller": chief["key_id"]}).json()["items"]
        assert "create_key" in [each["action"] for each in items]
        client.headers["Authorization"] = f"Bearer {desk['secret']}"
        assert len(entries_of(client, "staff")) == 1
        expect(client.get("/v1/audit", params={"collection": "guests"}), 404, "collection_not_found")
        expect(client.get("/v1/audit"), 403, "forbidden")
