"""Servers of one gallery that leave changes or searches to each other."""

from pathlib import Path

import pytest

from tests.api.collections import enrol, identify, make_collection
from tests.api.lines import people, send
from tests.api.problems import expect
from tests.conftest import Serve
from tests.pictures import photo_of


@pytest.fixture
def staff(serve: Serve, tmp_path: Path) -> str:
    """A collection with Ada, and nobody else."""
    with serve(data=tmp_path) as client:
        staff = make_collection(client)
        enrol(client, staff, photo_of(1), person_id="ada")
    return staff


def test_a_searcher_finds_what_a_writer_enrols_and_takes_no_changes(serve, staff, tmp_path) -> None:
    with serve(data=tmp_path, role="write") as writer, serve(data=tmp_path, role="search") as searcher:
        assert enrol(writer, staff, photo_of(2), person_id="bob").status_code == 201
        assert identify(searcher, staff, photo_of(2))["results"][0]["match"]["person_id"] == "bob"
        expect(enrol(searcher, staff, photo_of(3), person_id="eve"), 421, "not_served_here")
        expect(searcher.delete(f"{staff}/people/bob"), 421, "not_served_here")
        expect(searcher.post("/v1/keys", json={"name": "k", "scopes": ["read"]}), 421, "not_served_here")
        [refused] = send(searcher, f"{staff}/people/batch", people(1)[0])
        assert refused["error"]["code"] == "not_served_here"
        assert writer.delete(f"{staff}/people/bob").status_code == 204
        assert identify(searcher, staff, photo_of(2))["results"][0]["match"] is None


def test_a_writer_searches_nothing_keeps_no_index_and_verifies(serve, staff, tmp_path) -> None:
    with serve(data=tmp_path, role="write") as writer:
        refused = writer.post(f"{staff}/identify", files={"image": photo_of(1)})
        expect(refused, 421, "not_served_here")
        twin = enrol(writer, staff, photo_of(1, noise=5), person_id="twin").json()
        assert "looks_like_another_person" not in [warning["code"] for warning in twin["warnings"]]
        same = {"collection": staff.rpartition("/")[2], "person_id": "ada"}
        verified = writer.post("/v1/verify", files={"probe": photo_of(1)}, data=same).json()
        assert verified["same_person"]
        assert writer.app.state.gallery.indexes._held == {}
