"""Batches as streams: answered while they are still being sent, in flat memory, for as long as they flow."""

import gc
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import httpx
import pytest

from sameface.api.errors import InvalidRequest
from sameface.api.stream import batch_response as streams
from sameface.api.stream import mailbox as mailboxes
from sameface.api.stream.entries import LineReader
from tests.api.collections import make_collection
from tests.api.lines import people, send, to_line
from tests.api.problems import expect
from tests.conftest import wait_for
from tests.model.people import random_units
from tests.networks import DIMENSION
from tests.pictures import photo_of


@pytest.fixture
def connection(client: httpx.Client, staff: str) -> Iterator[tuple[socket.socket, str]]:
    with socket.create_connection((client.base_url.host, client.base_url.port), timeout=20) as opened:
        yield opened, staff


def start_stream(opened: socket.socket, address: str) -> None:
    head = f"POST {address} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"
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
        workers = client.app.state.pipeline.queue
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


def test_streams_that_send_nothing_leave_room_for_others(serve) -> None:
    with serve(max_upload_bytes=4_000_000) as client, ExitStack() as opened:
        staff = make_collection(client)
        idle = [opened.enter_context(open_stream(client, f"{staff}/identify/batch")) for _ in range(10)]
        wait_for(lambda: client.app.state.uploads.taken >= 10 * 256_000)
        assert client.app.state.uploads.taken < 3_000_000
        line = to_line("x", embedding=random_units(1, DIMENSION, 4)[0])
        assert len(send(client, f"{staff}/identify/batch", line * 5_000)) == 5_000
        assert len(idle) == 10


def test_streams_leave_a_part_of_the_room_to_others(serve) -> None:
    with serve(max_upload_bytes=4_000_000, request_seconds=5) as client, ExitStack() as opened:
        staff = make_collection(client)
        for _ in range(8):
            stream = opened.enter_context(open_stream(client, f"{staff}/identify/batch"))
            send_chunk(stream, b"x" * 900_000)  # of a line that does not end
        wait_for(lambda: client.app.state.uploads.taken > 2_000_000)
        files = {"image": photo_of(1) + bytes(800_000)}
        assert {client.post("/v1/detect", files=files).status_code for _ in range(5)} == {200}


def test_streams_that_wait_for_each_others_room_come_to_an_end(serve) -> None:
    with serve(max_upload_bytes=3_000_000, request_seconds=3) as client, ExitStack() as opened:
        staff, uploads = make_collection(client), client.app.state.uploads
        batches = [opened.enter_context(open_stream(client, f"{staff}/identify/batch")) for _ in range(3)]
        wait_for(lambda: uploads.in_batches == 3 * streams.IDLE_BYTES)  # all are being read
        for _ in range(4):
            for batch in batches:
                send_chunk(batch, b"x" * 300_000)
        for batch in batches:
            read_until(batch, b'"error"')
        wait_for(lambda: uploads.taken == 0)


def test_lines_of_all_streams_are_parsed_on_one_thread(client: httpx.Client, staff: str) -> None:
    with ThreadPoolExecutor(4) as senders:
        list(senders.map(lambda _: send(client, f"{staff}/identify/batch", to_line("1") * 600), range(4)))
    names = [thread.name for thread in threading.enumerate()]
    assert sum(name.startswith("sameface-lines") for name in names) == 1


def test_a_byte_now_and_then_is_no_progress(serve) -> None:
    with serve(request_seconds=0.5) as client:
        staff = make_collection(client)
        with open_stream(client, f"{staff}/identify/batch") as stream:
            started = time.monotonic()
            with suppress(ConnectionError):
                while time.monotonic() - started < 8:
                    stream.sendall(b"1\r\n{\r\n")
                    time.sleep(0.1)
            assert time.monotonic() - started < 6


def open_stream(client: httpx.Client, path: str) -> socket.socket:
    """A connection on which a batch has begun and sends nothing yet."""
    stream = socket.create_connection((client.base_url.host, client.base_url.port), timeout=10)
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"
    stream.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
    return stream


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
    put = mailboxes.Mailbox.put

    async def watch(mailbox: mailboxes.Mailbox, entries: list, *, last: bool = False) -> None:
        await put(mailbox, entries, last=last)
        largest[0] = max(largest[0], mailbox.held_bytes)

    monkeypatch.setattr(mailboxes.Mailbox, "put", watch)
    monkeypatch.setattr(streams, "WAITING_BYTES", 50_000)
    with serve() as client:
        staff = make_collection(client)
        line = to_line("x", embedding=random_units(1, DIMENSION, 4)[0])
        answers = send(client, f"{staff}/identify/batch", (line * 50 for _ in range(400)))
        assert len(answers) == 20_000
    assert 0 < largest[0] < len(line) * 20_000 / 5


def test_refused_lines_leave_nothing_in_memory(client: httpx.Client, staff: str) -> None:
    send(client, f"{staff}/identify/batch", to_line("1") * 2_000)
    gc.collect()
    assert sum(isinstance(thing, InvalidRequest) for thing in gc.get_objects()) < 500


def test_lines_are_found_wherever_the_chunks_are_cut() -> None:
    body = b'{"id": "1"}\n\n{"id": "2"}\r\n{"id": "333333333"}\n{"id": "4"}'
    for size in range(1, len(body) + 1):
        reader = LineReader(15)
        found = [
            entry
            for at in range(0, len(body), size)
            for entry in reader.read(body[at : at + size], last=at + size >= len(body))
        ]
        assert [entry.number for entry in found] == [1, 3, 4, 5]
        assert [isinstance(entry.content, bytes) for entry in found] == [True, True, False, True]


def test_entries_without_content_take_room_too() -> None:
    lines = LineReader(100).read(b"1\n" * 1000, last=False)
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
        monkeypatch.setattr(client.app.state.gallery, "search_newest", lambda *_, **__: 1 / 0)
        [answer] = send(client, f"{staff}/identify/batch", to_line("1", embedding=good))
        assert (answer["id"], answer["error"]["code"]) == (None, "internal")
        assert "ZeroDivisionError" in caplog.text
