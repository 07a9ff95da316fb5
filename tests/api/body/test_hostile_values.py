"""Values that no honest client sends: refused in a sentence, and nothing of them is written."""

import base64
import json
from http.client import HTTPConnection

import httpx
import numpy as np
import pytest

from tests.api.collections import embedding_of, enrol
from tests.api.lines import send, to_line
from tests.attack.exchange import exchange, write_request
from tests.networks import DIMENSION
from tests.pictures import photo_of

NESTED = "[" * 5_000 + "]" * 5_000


def refused(response: httpx.Response, status: int, code: str) -> None:
    assert (response.status_code, response.json()["code"]) == (status, code), response.text


@pytest.mark.parametrize("person_id", [".", "..", "", "a/b", "x" * 129, "ad a"])
def test_a_person_cannot_be_called_like_a_folder(client: httpx.Client, staff: str, person_id: str) -> None:
    if person_id:
        refused(enrol(client, staff, photo_of(1), person_id=person_id), 422, "invalid_request")
    line = to_line("1", person_id=person_id, embedding=embedding_of(client, photo_of(1)))
    [answer] = send(client, f"{staff}/people/batch", line)
    assert answer["error"]["code"] == "invalid_request"
    assert client.get(staff).json()["people"] == 0


def test_three_dots_are_an_id(client: httpx.Client, staff: str) -> None:
    assert enrol(client, staff, photo_of(1), person_id="...").status_code == 201


@pytest.mark.parametrize("rest", ["/people/ada/", "/people/", "/", "/people/ada/faces/", "//"])
def test_a_trailing_slash_leads_nowhere_and_deletes_nothing(
    client: httpx.Client, staff: str, rest: str
) -> None:
    enrol(client, staff, photo_of(1), person_id="ada")
    for method in ("GET", "DELETE"):
        response = client.request(method, f"{staff}{rest}", follow_redirects=True)
        refused(response, 404, "not_found")
    assert client.get(staff).json()["people"] == 1


@pytest.mark.parametrize("name", ["..", "."])
def test_no_delete_reaches_a_parent(client: httpx.Client, staff: str, name: str) -> None:
    """Sent as it is: other clients than this one normalise such an address."""
    enrol(client, staff, photo_of(1), person_id="ada")
    for path in (f"{staff}/people/{name}", f"{staff}/people/ada/faces/{name}", f"{staff}/people/{name}/"):
        raw = HTTPConnection(client.base_url.host, client.base_url.port)
        raw.request("DELETE", path)
        assert raw.getresponse().status in (404, 422)
        raw.close()
    assert client.get(f"{staff}/people/ada").status_code == 200


@pytest.mark.parametrize("metadata", ['{"a": "\\ud800"}', '{"a": NaN}', f'{{"a": {NESTED}}}', NESTED, "[1]"])
def test_metadata_that_could_not_be_read_back_is_refused(
    client: httpx.Client, staff: str, metadata: str
) -> None:
    refused(enrol(client, staff, photo_of(1), metadata=metadata), 422, "invalid_request")
    enrol(client, staff, photo_of(1), person_id="ada", metadata='{"kept": 1}')
    for body in (f'{{"metadata": {metadata}}}', json.dumps({"metadata": metadata})):
        headers = {"content-type": "application/json"}
        changed = client.patch(f"{staff}/people/ada", content=body, headers=headers)
        refused(changed, 422, "invalid_request")
    assert client.get(f"{staff}/people/ada").json()["metadata"] == {"kept": 1}
    assert len(client.get(f"{staff}/people").json()["items"]) == 1


def test_a_name_is_valid_text(client: httpx.Client, staff: str) -> None:
    enrol(client, staff, photo_of(1), person_id="ada", name="Ada")
    for body in ('{"name": "\\ud800"}', '{"name": "' + "x" * 201 + '"}'):
        headers = {"content-type": "application/json"}
        refused(client.patch(f"{staff}/people/ada", content=body, headers=headers), 422, "invalid_request")
    assert client.get(f"{staff}/people/ada").json()["name"] == "Ada"


def test_a_nested_line_fails_alone(client: httpx.Client, staff: str) -> None:
    good = to_line("1", embedding=embedding_of(client, photo_of(1)))
    bad = json.dumps({"id": "2", "embedding": NESTED}).encode() + b"\n"
    worse = b'{"id": "3", "embedding": ' + NESTED.encode() + b"}\n"
    answers = send(client, f"{staff}/identify/batch", good + bad + worse + good)
    assert ["error" in answer for answer in answers] == [False, True, True, False]
    assert {answer["error"]["code"] for answer in answers[1:3]} == {"invalid_request"}


def test_an_embedding_that_is_far_too_long_is_refused_before_it_is_expanded(
    client: httpx.Client, staff: str
) -> None:
    long = base64.b64encode(np.zeros(1_000_000, "<f4").tobytes()).decode()
    refused(client.post(f"{staff}/identify", json={"embedding": long}), 422, "invalid_request")


def test_far_too_many_values_are_refused_before_they_have_all_arrived(
    client: httpx.Client, staff: str
) -> None:
    headers = {"Content-Type": "application/json"}
    begun = write_request("POST", f"{staff}/people", headers | {"Content-Length": "100000000"})
    answer = exchange(client.base_url, begun, b'{"embeddings": [' + b"[0]," * 200_000, seconds=10)
    assert answer.status == 422


def test_a_request_has_few_embeddings(client: httpx.Client, staff: str) -> None:
    one = base64.b64encode(np.ones(DIMENSION, "<f4").tobytes()).decode()
    answer = client.post(f"{staff}/people", json={"embeddings": [one] * 257})
    refused(answer, 422, "invalid_request")
    assert client.post(f"{staff}/people", json={"embeddings": [one] * 256}).status_code == 201


@pytest.mark.parametrize("rate", [5e-324, 1e-13])
def test_a_rate_that_no_arithmetic_can_share_out_is_refused(
    client: httpx.Client, staff: str, rate: float
) -> None:
    enrol(client, staff, photo_of(1))
    asked = {"embedding": embedding_of(client, photo_of(1)), "target_fpir": rate, "extrapolate": True}
    refused(client.post(f"{staff}/identify", json=asked), 422, "invalid_request")
    files = {"probe": photo_of(1), "reference": photo_of(1)}
    answer = client.post("/v1/verify", files=files, data={"target_fmr": rate, "extrapolate": True})
    refused(answer, 422, "invalid_request")
