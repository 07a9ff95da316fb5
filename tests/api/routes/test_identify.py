"""The identify route, as a client sees it."""

import httpx
import numpy as np
import pytest

from sameface.model.gallery.index.faiss import candidates
from tests.api.collections import enrol, identify
from tests.api.lines import people, send, to_line
from tests.api.problems import expect
from tests.conftest import wait_for
from tests.model.people import random_units
from tests.networks import DIMENSION
from tests.pictures import photo_of


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


def test_an_exact_search_compares_everybody_alone_and_in_a_batch(
    client: httpx.Client, staff: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(candidates, "EXACT_ROWS", 200)
    monkeypatch.setattr(candidates, "FEWEST_CANDIDATES", 1)
    monkeypatch.setattr(candidates, "CANDIDATES_PER_ROW", 0)
    send(client, f"{staff}/people/batch", b"".join(people(400)))
    probes = random_units(100, DIMENSION, 4)
    lines = b"".join(to_line(str(n), embedding=row) for n, row in enumerate(probes))
    closest = [f"p{best}" for best in np.argmax(probes @ random_units(400, DIMENSION, 3).T, axis=1)]

    def find(query: str) -> list[str]:
        answers = send(client, f"{staff}/identify/batch?limit=1{query}", lines)
        return [answer["results"][0]["candidates"][0]["person_id"] for answer in answers]

    find("")
    wait_for(lambda: client.get(staff).json()["index"] == "codes")
    roughly = find("")
    assert roughly != closest
    assert find("&exact=true") == closest
    missed = next(n for n in range(100) if roughly[n] != closest[n])
    body = {"embedding": probes[missed].tolist(), "limit": 1, "exact": True}
    [result] = client.post(f"{staff}/identify", json=body).json()["results"]
    assert result["candidates"][0]["person_id"] == closest[missed]


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
