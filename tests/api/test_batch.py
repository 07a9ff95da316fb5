"""Batches: many entries in one request, answered while they are still being sent."""

import base64
import itertools
import json
import socket
import threading
import time
from collections.abc import Iterator

import httpx
import numpy as np
import pytest

from api import arrivals, streams
from api.arrivals import LineReader
from tests.api.test_bad_input import expect
from tests.api.test_people import embedding_of
from tests.conftest import wait_for
from tests.model.people import random_units
from tests.networks import DIMENSION
from tests.pictures import photo_of

NUMBERS = itertools.count()


@pytest.fixture
def staff(client: httpx.Client) -> str:
    return make_collection(client)


def make_collection(client: httpx.Client) -> str:
    address = f"/v1/collections/batch-{next(NUMBERS)}"
    assert client.put(address).status_code == 201
    return address


def to_line(id: object, **fields: object) -> bytes:  # noqa: A002
    if isinstance(fields.get("image"), bytes):
        fields["image"] = {"base64": base64.b64encode(fields["image"]).decode()}
    if isinstance(fields.get("embedding"), np.ndarray):
        fields["embedding"] = fields["embedding"].tolist()
    return json.dumps({"id": id, **fields}).encode() + b"\n"


def send(client: httpx.Client, address: str, content: object, **others: object) -> list[dict]:
    headers = {"Content-Type": "application/x-ndjson", **others.pop("headers", {})}
    response = client.post(address, content=content, headers=headers, **others)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in response.text.splitlines()]


def people(count: int) -> list[bytes]:
    embeddings = random_units(count, DIMENSION, 3)
    return [to_line(str(n), person_id=f"p{n}", embedding=row) for n, row in enumerate(embeddings)]


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


def test_an_id_twice_under_one_key_is_one_enrolment(client: httpx.Client, staff: str) -> None:
    one, two = people(2)
    other = to_line("0", person_id="other", embedding=random_units(1, DIMENSION, 9)[0])
    headers = {"Idempotency-Key": "tuesday"}
    answers = send(client, f"{staff}/people/batch", one + one + other + two, headers=headers)
    assert answers[0] == answers[1]
    assert answers[2]["error"]["code"] == "idempotency_key_reused"
    assert client.get(staff).json()["faces"] == 2


def test_a_full_disk_fails_the_block_and_searches_go_on(serve, tmp_path) -> None:
    with serve(data=tmp_path) as client:
        staff = make_collection(client)
        send(client, f"{staff}/people/batch", people(1)[0])
        database = client.app.state.gallery.store._database
        with database.writing() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
            connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
        answers = send(client, f"{staff}/people/batch", b"".join(people(2000)[1:]))
        assert answers[-1]["error"]["code"] == "storage_full"
        known = sum("error" not in answer for answer in answers) + 1
        assert client.get(staff).json()["people"] == known
        [found] = send(client, f"{staff}/identify/batch", people(1)[0].replace(b'"person_id": "p0", ', b""))
        assert found["results"][0]["match"]["person_id"] == "p0"


# Streams.


@pytest.fixture
def connection(client: httpx.Client, staff: str) -> Iterator[tuple[socket.socket, str]]:
    with socket.create_connection((client.base_url.host, client.base_url.port), timeout=20) as opened:
        yield opened, staff


def start_stream(opened: socket.socket, address: str) -> None:
    head = f"POST {address} HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\n"
    opened.sendall(head.encode() + b"Transfer-Encoding: chunked\r\n\r\n")


def send_chunk(opened: socket.socket, content: bytes) -> None:
    opened.sendall(b"%x\r\n%s\r\n" % (len(content), content))


def read_until(opened: socket.socket, wanted: bytes) -> bytes:
    received = b""
    while wanted not in received:
        more = opened.recv(65536)
        assert more, f"the stream ended before {wanted!r}: {received!r}"
        received += more
    return received


def test_answers_flow_while_the_body_is_still_being_sent(connection: tuple[socket.socket, str]) -> None:
    opened, staff = connection
    good = random_units(1, DIMENSION, 4)[0]
    start_stream(opened, f"{staff}/identify/batch")
    for number in range(5):
        send_chunk(opened, to_line(f"probe-{number}", embedding=good))
        read_until(opened, b"probe-%d" % number)
    send_chunk(opened, to_line("half", embedding=good)[:10])
    send_chunk(opened, to_line("half", embedding=good)[10:])
    read_until(opened, b'"half"')
    opened.sendall(b"0\r\n\r\n")
    read_until(opened, b"0\r\n\r\n")


def test_a_stream_may_last_longer_than_a_request(serve) -> None:
    with serve(request_seconds=0.5) as client:
        staff = make_collection(client)
        [good] = random_units(1, DIMENSION, 4)

        def slowly() -> Iterator[bytes]:
            for number in range(8):
                time.sleep(0.2)
                yield to_line(str(number), embedding=good)

        assert len(send(client, f"{staff}/identify/batch", slowly())) == 8


def test_a_client_that_sends_nothing_more_is_told_so(serve) -> None:
    with serve(request_seconds=0.3) as client:
        staff = make_collection(client)
        address = (client.base_url.host, client.base_url.port)
        with socket.create_connection(address, timeout=10) as opened:
            start_stream(opened, f"{staff}/identify/batch")
            send_chunk(opened, to_line("1", embedding=random_units(1, DIMENSION, 4)[0]))
            received = read_until(opened, b"timed_out")
            assert b'"id":"1"' in received


def test_a_client_that_goes_away_stops_the_work(serve) -> None:
    with serve() as client:
        staff = make_collection(client)
        workers = client.app.state.pipeline.workers
        line = to_line("x", image=photo_of(1, 2, 3))
        with socket.create_connection((client.base_url.host, client.base_url.port)) as opened:
            start_stream(opened, f"{staff}/identify/batch")
            for _ in range(30):
                send_chunk(opened, line * 3)
            wait_for(lambda: workers.taken > 0)
        wait_for(lambda: workers.taken == 0 and client.app.state.uploads.taken == 0)


def test_a_client_that_sends_everything_first_gets_everything(serve) -> None:
    """More answers than the connection's buffers hold, none of them read before the last probe is sent."""
    with serve() as client:
        staff = make_collection(client)
        send(client, f"{staff}/people/batch", b"".join(people(100)))
        line = b"".join(
            to_line(f"{n}", embedding=row) for n, row in enumerate(random_units(50, DIMENSION, 3))
        )
        answers = send(client, f"{staff}/identify/batch?limit=100", line * 40)
        assert len(answers) == 2000
        assert [answer["id"] for answer in answers] == [str(n) for n in range(50)] * 40


def test_answers_that_nobody_reads_end_with_an_error_line(serve) -> None:
    with serve(max_unread_bytes=100_000) as client:
        staff = make_collection(client)
        send(client, f"{staff}/people/batch", b"".join(people(100)))
        line = b"".join(
            to_line(f"{n}", embedding=row) for n, row in enumerate(random_units(50, DIMENSION, 3))
        )
        answers = send(client, f"{staff}/identify/batch?limit=100", line * 200)
        assert 0 < len(answers) < 10_000
        assert answers[-1]["id"] is None
        assert (answers[-1]["error"]["code"], answers[-1]["error"]["limit"]) == ("body_too_large", 100_000)
        assert all("results" in answer for answer in answers[:-1])


def test_streams_hold_no_more_than_the_server_has_room_for(serve) -> None:
    with serve(max_upload_bytes=1_000_000) as client:
        staff = make_collection(client)
        headers = {"Content-Type": "application/x-ndjson"}
        uploads = client.app.state.uploads
        uploads.take(800_000)
        expect(client.post(f"{staff}/identify/batch", content=b"", headers=headers), 429, "overloaded")
        uploads.give_back(800_000)
        assert send(client, f"{staff}/identify/batch", b"") == []
        wait_for(lambda: uploads.taken == 0)


def test_a_busy_server_makes_a_stream_wait_and_does_not_refuse_it(serve) -> None:
    with serve(queue=1, threads=1) as client:
        staff = make_collection(client)
        body = b"".join(to_line(str(n), image=photo_of(1)) for n in range(12))
        counts: list[int] = []
        threads = [
            threading.Thread(target=lambda: counts.append(len(send(client, f"{staff}/identify/batch", body))))
            for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert counts == [12, 12, 12]


def test_memory_holds_a_few_blocks_however_long_the_body_is(serve, monkeypatch: pytest.MonkeyPatch) -> None:
    largest = [0]
    put = arrivals.Mailbox.put

    async def watch(mailbox: arrivals.Mailbox, entries: list) -> None:
        await put(mailbox, entries)
        largest[0] = max(largest[0], mailbox._bytes)

    monkeypatch.setattr(arrivals.Mailbox, "put", watch)
    monkeypatch.setattr(streams, "WAITING_BYTES", 50_000)
    with serve() as client:
        staff = make_collection(client)
        line = to_line("x", embedding=random_units(1, DIMENSION, 4)[0])
        answers = send(client, f"{staff}/identify/batch", (line * 50 for _ in range(400)))
        assert len(answers) == 20_000
    assert 0 < largest[0] < len(line) * 20_000 / 5


def test_lines_are_found_wherever_the_chunks_are_cut() -> None:
    body = b'{"id": "1"}\n\n{"id": "2"}\r\n{"id": "333333333"}\n{"id": "4"}'
    for size in range(1, len(body) + 1):
        reader = LineReader(15)
        found = [entry for at in range(0, len(body), size) for entry in reader.write(body[at : at + size])]
        found += reader.close()
        assert [entry.number for entry in found] == [1, 3, 4, 5]
        assert [isinstance(entry.content, bytes) for entry in found] == [True, True, False, True]


def test_entries_without_content_take_room_too() -> None:
    lines = LineReader(100).write(b"1\n" * 1000)
    assert sum(entry.size for entry in lines) > 100_000


def test_a_stream_is_not_cut_while_the_server_works_on_it(serve, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(request_seconds=0.3, threads=1) as client:
        staff = make_collection(client)
        pipeline = client.app.state.pipeline
        embed = pipeline.embed_faces
        monkeypatch.setattr(pipeline, "embed_faces", lambda *look: time.sleep(0.05) or embed(*look))
        body = b"".join(to_line(str(n), image=photo_of(1)) for n in range(30))
        assert len(send(client, f"{staff}/identify/batch", body)) == 30


def test_a_client_may_wait_for_slow_answers_before_it_sends_more(
    serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve(request_seconds=0.4, threads=1) as client:
        staff = make_collection(client)
        pipeline = client.app.state.pipeline
        embed = pipeline.embed_faces
        monkeypatch.setattr(pipeline, "embed_faces", lambda *look: time.sleep(1) or embed(*look))
        address = (client.base_url.host, client.base_url.port)
        with socket.create_connection(address, timeout=10) as opened:
            start_stream(opened, f"{staff}/identify/batch")
            for number in range(2):
                send_chunk(opened, to_line(f"probe-{number}", image=photo_of(1)))
                assert b"timed_out" not in read_until(opened, b"probe-%d" % number)
                time.sleep(0.3)  # to look at it: the time runs from the answer
            opened.sendall(b"0\r\n\r\n")
            assert b"timed_out" not in read_until(opened, b"0\r\n\r\n")


def test_a_defect_ends_the_stream_with_a_line(
    serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with serve() as client:
        staff = make_collection(client)
        [good] = random_units(1, DIMENSION, 4)
        monkeypatch.setattr(client.app.state.gallery, "search", lambda *_: 1 / 0)
        [answer] = send(client, f"{staff}/identify/batch", to_line("1", embedding=good))
        assert (answer["id"], answer["error"]["code"]) == (None, "internal")
        assert "ZeroDivisionError" in caplog.text


def test_a_long_line_that_cannot_be_parsed_is_not_parsed_for_its_id(client: httpx.Client, staff: str) -> None:
    line = json.dumps({"id": "x", "embedding": [1] * 300_000}).encode()
    [answer] = send(client, f"{staff}/identify/batch", line)
    assert (answer["id"], answer["error"]["code"]) == (None, "invalid_request")
