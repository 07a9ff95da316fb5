"""Batches: many entries in one request, each answered by itself."""

import base64
import json

import httpx
import numpy as np
import pytest

from tests.api.collections import embedding_of, make_collection
from tests.api.lines import people, send, to_line
from tests.api.problems import expect
from tests.model.people import random_units
from tests.model.store.full_disk import leave_no_room
from tests.networks import DIMENSION
from tests.pictures import photo_of


def test_many_are_enrolled_and_identified_by_photo_and_by_embedding(client: httpx.Client, staff: str) -> None:
    enrolled = send(
        client,
        f"{staff}/people/batch",
        to_line("a", person_id="ada", name="Ada", metadata={"x": 1}, image=photo_of(1))
        + to_line("b", person_id="bob", embedding=embedding_of(client, photo_of(2)), model="tiny-recogniser")
        + to_line("c", image=photo_of(3)),
    )
    assert [(entry["id"], len(entry["faces"])) for entry in enrolled] == [("a", 1), ("b", 1), ("c", 1)]
    assert client.get(f"{staff}/people/ada").json()["metadata"] == {"x": 1}
    packed = base64.b64encode(np.array(embedding_of(client, photo_of(3)), "<f4").tobytes()).decode()
    found = send(
        client,
        f"{staff}/identify/batch?limit=1",
        to_line("1", image=photo_of(2, noise=5))
        + to_line("2", embedding=packed)
        + to_line("3", image=photo_of()),
    )
    assert found[0]["results"][0]["match"]["person_id"] == "bob"
    assert found[0]["results"][0]["face"]["box"]
    assert found[1]["results"][0]["match"]["person_id"] == enrolled[2]["person_id"]
    assert len(found[1]["results"][0]["candidates"]) == 1
    assert (found[2]["id"], found[2]["error"]["code"]) == ("3", "no_face_found")


def test_answers_of_a_batch_are_those_of_single_requests(client: httpx.Client, staff: str) -> None:
    send(client, f"{staff}/people/batch", b"".join(people(40)))
    probes = random_units(25, DIMENSION, 8)
    many = send(
        client,
        f"{staff}/identify/batch?threshold=0.2&fusion=mean",
        b"".join(to_line(str(n), embedding=row) for n, row in enumerate(probes)),
    )
    for row, answer in zip(probes, many, strict=True):
        body = {"embedding": row.tolist(), "threshold": 0.2, "fusion": "mean"}
        assert client.post(f"{staff}/identify", json=body).json()["results"] == answer["results"]


def test_photos_of_a_form_are_known_by_their_file_names(client: httpx.Client, staff: str) -> None:
    files = [("images", (f"{n}.png", photo_of(n) if n else b"no picture")) for n in range(3)]
    response = client.post(f"{staff}/people/batch", files=files)
    answers = [json.loads(line) for line in response.text.splitlines()]
    assert [answer["id"] for answer in answers] == ["0.png", "1.png", "2.png"]
    assert answers[0]["error"]["code"] == "unsupported_image"
    response = client.post(f"{staff}/identify/batch", files=[("images", ("who.png", photo_of(2, noise=3)))])
    [found] = [json.loads(line) for line in response.text.splitlines()]
    assert found["results"][0]["match"]["person_id"] == answers[2]["person_id"]


BROKEN = [
    (b"{not json}\n", None, "invalid_request"),
    (b"[1, 2]\n", None, "invalid_request"),
    (b'{"embedding": [1]}\n', None, "invalid_request"),
    (to_line("x"), "x", "invalid_request"),
    (to_line("x", embedding=[1.0] * (DIMENSION + 1)), "x", "invalid_request"),
    (to_line("x", embedding=[0.0] * DIMENSION), "x", "invalid_request"),
    (to_line("x", embedding=[1e39] * DIMENSION), "x", "invalid_request"),
    (to_line("x", embedding="AAA"), "x", "invalid_request"),
    (to_line("x", embedding=[1.0] * DIMENSION, model="arcface"), "x", "model_mismatch"),
    (to_line("x", embedding=[1.0] * DIMENSION, surprise=1), "x", "invalid_request"),
    (to_line("x", image=b"no picture"), "x", "unsupported_image"),
    (b'{"id": "x", "image": {"base64": "%"}}\n', "x", "invalid_request"),
    (b"\xff\xfe\n", None, "invalid_request"),
    (b"[" * 100_000 + b"\n", None, "invalid_request"),
]


@pytest.mark.parametrize(("line", "id", "code"), BROKEN)
@pytest.mark.parametrize("route", ["identify/batch", "people/batch"])
def test_a_broken_line_in_the_middle_fails_alone(
    client: httpx.Client,
    staff: str,
    route: str,
    line: bytes,
    id: str | None,  # noqa: A002
    code: str,
) -> None:
    good = random_units(1, DIMENSION, 4)[0]
    answers = send(
        client, f"{staff}/{route}", to_line("1", embedding=good) + line + to_line("3", embedding=good)
    )
    assert [answer["id"] for answer in answers] == ["1", id, "3"]
    assert "error" not in answers[0]
    assert "error" not in answers[2]
    assert (answers[1]["error"]["code"], answers[1]["error"]["line"]) == (code, 2)
    assert answers[1]["error"]["request_id"]


def test_a_person_with_bad_fields_is_refused_alone(client: httpx.Client, staff: str) -> None:
    good = random_units(1, DIMENSION, 4)[0]
    lines = [
        to_line("1", person_id="a b", embedding=good),
        to_line("2", name="x" * 300, embedding=good),
        to_line("3", metadata={"x": "y" * 20_000}, embedding=good),
        to_line("4", person_id="fine", embedding=good),
    ]
    answers = send(client, f"{staff}/people/batch", b"".join(lines))
    assert [answer.get("error", {}).get("code") for answer in answers] == ["invalid_request"] * 3 + [None]
    assert client.get(staff).json()["people"] == 1


def test_blank_lines_and_a_last_line_without_an_end_are_fine(client: httpx.Client, staff: str) -> None:
    good = random_units(1, DIMENSION, 4)[0]
    body = b"\n\r\n" + to_line("1", embedding=good) + b"\n" + to_line("2", embedding=good).rstrip()
    assert [answer["id"] for answer in send(client, f"{staff}/identify/batch", body)] == ["1", "2"]
    assert send(client, f"{staff}/identify/batch", b"") == []


def test_a_line_that_is_too_long_is_dropped_and_the_rest_answered(serve) -> None:
    with serve(max_image_bytes=10_000) as client:
        staff = make_collection(client)
        good = random_units(1, DIMENSION, 4)[0]
        body = (
            to_line("1", embedding=good) + to_line("2", image=b"x" * 200_000) + to_line("3", embedding=good)
        )
        answers = send(client, f"{staff}/identify/batch", body)
        assert [answer["id"] for answer in answers] == ["1", None, "3"]
        assert answers[1]["error"]["limit"] > 10_000
        files = [("images", ("large", b"x" * 20_000)), ("images", ("small", photo_of()))]
        response = client.post(f"{staff}/identify/batch", files=files)
        codes = [json.loads(line)["error"]["code"] for line in response.text.splitlines()]
        assert codes == ["image_too_large", "no_face_found"]


def test_a_long_line_that_cannot_be_parsed_is_not_parsed_for_its_id(client: httpx.Client, staff: str) -> None:
    line = json.dumps({"id": "x", "embedding": [1] * 300_000}).encode()
    [answer] = send(client, f"{staff}/identify/batch", line)
    assert (answer["id"], answer["error"]["code"]) == (None, "invalid_request")


def test_a_broken_form_ends_with_an_error_line(client: httpx.Client, staff: str) -> None:
    part = b'--edge\r\nContent-Disposition: form-data; name="%s"; filename="%s"\r\n\r\n%s\r\n'
    headers = {"Content-Type": "multipart/form-data; boundary=edge"}
    surprise = part % (b"surprise", b"x", b"y")
    for ending, expected in ((surprise, ["no_face_found"]), (b"", []), (b"--edg nonsense", [])):
        content = part % (b"images", b"1", photo_of()) + ending
        response = client.post(f"{staff}/identify/batch", content=content, headers=headers)
        answers = [json.loads(line) for line in response.text.splitlines()]
        assert [answer["error"]["code"] for answer in answers] == [*expected, "invalid_request"]
        assert answers[-1]["id"] is None


def test_what_cannot_be_streamed_is_refused_before_the_first_answer(client: httpx.Client, staff: str) -> None:
    ndjson = {"Content-Type": "application/x-ndjson"}
    expect(client.post(f"{staff}/identify/batch", json={}), 415, "unsupported_media_type")
    unknown = client.post("/v1/collections/nobody/identify/batch", content=b"", headers=ndjson)
    expect(unknown, 404, "collection_not_found")
    for query in ("limit=0", "limit=1000000", "fusion=min", "surprise=1", "threshold=0.3&target_fpir=0.1"):
        refused = client.post(f"{staff}/identify/batch?{query}", content=b"", headers=ndjson)
        expect(refused, 422, "invalid_request")
    rate = client.post(f"{staff}/identify/batch?target_fpir=0.1", content=b"", headers=ndjson)
    expect(rate, 422, "not_calibrated")


def test_a_known_person_gets_one_more_face_also_within_a_block(client: httpx.Client, staff: str) -> None:
    lines = [
        to_line(str(n), person_id="ada", name=f"Ada {n}", embedding=row)
        for n, row in enumerate(random_units(3, DIMENSION, 5))
    ]
    first = send(client, f"{staff}/people/batch", lines[0] + lines[1])
    assert [item["code"] for item in first[1]["warnings"]] == ["unlike_own_faces"]
    send(client, f"{staff}/people/batch", lines[2])
    ada = client.get(f"{staff}/people/ada").json()
    assert (ada["name"], len(ada["faces"])) == ("Ada 0", 3)


def test_oddities_are_noticed_within_a_block(client: httpx.Client, staff: str) -> None:
    [same] = random_units(1, DIMENSION, 6)
    answers = send(
        client,
        f"{staff}/people/batch",
        to_line("1", person_id="ada", image=photo_of(1))
        + to_line("2", person_id="eve", image=photo_of(1))
        + to_line("3", person_id="bob", embedding=2 * same),
    )
    codes = [[(item["code"], item["person_id"]) for item in answer["warnings"]] for answer in answers]
    assert codes[0] == [("looks_like_another_person", "eve")]
    assert codes[1] == [("same_photo", "ada"), ("looks_like_another_person", "ada")]
    assert codes[2] == [("embedding_normalised", None)]


# Retries.


def test_a_retry_gets_the_first_answers_and_enrols_nobody_twice(client: httpx.Client, staff: str) -> None:
    key = {"Idempotency-Key": "monday"}
    lines = people(30)
    first = send(client, f"{staff}/people/batch", b"".join(lines[:20]), headers=key)
    again = send(client, f"{staff}/people/batch", b"".join(lines), headers=key)
    assert again[:20] == first
    assert client.get(staff).json()["faces"] == 30
    part = send(client, f"{staff}/people/batch", b"".join(lines[25:]), headers=key)
    assert part == again[25:]
    other = to_line("3", person_id="other", embedding=random_units(1, DIMENSION, 9)[0])
    [refused] = send(client, f"{staff}/people/batch", other, headers=key)
    assert refused["error"]["code"] == "idempotency_key_reused"
    assert client.get(staff).json()["faces"] == 30


@pytest.mark.sqlite
def test_a_full_disk_fails_the_block_and_searches_go_on(serve, tmp_path) -> None:
    with serve(data=tmp_path) as client:
        staff = make_collection(client)
        send(client, f"{staff}/people/batch", people(1)[0])
        leave_no_room(client.app.state.gallery.store)
        answers = send(client, f"{staff}/people/batch", b"".join(people(2000)[1:]))
        assert answers[-1]["error"]["code"] == "storage_full"
        known = sum("error" not in answer for answer in answers) + 1
        assert client.get(staff).json()["people"] == known
        [found] = send(client, f"{staff}/identify/batch", people(1)[0].replace(b'"person_id": "p0", ', b""))
        assert found["results"][0]["match"]["person_id"] == "p0"
