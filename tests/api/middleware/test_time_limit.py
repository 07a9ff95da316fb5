"""What surrounds every request: its id, its time, its place in the queue, and the last resort."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import pytest
from fastapi import BackgroundTasks, Request
from PIL import ImageFile

from sameface.api.errors import REFUSAL_SECONDS
from sameface.model.photo.image import PhotoFile
from sameface.model.runtime.work_queue import WorkQueue
from tests.api.problems import expect
from tests.attack.crafted_photos import add_scans
from tests.conftest import wait_for
from tests.pictures import draw_photo, encode, photo_of

HALF_A_REQUEST = (
    b"POST /v1/detect HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=edge\r\n"
    b"Content-Length: 1000\r\n\r\n--edge\r\n"
)


@contextmanager
def busy(workers: WorkQueue, jobs: int) -> Iterator[None]:
    """So many jobs that do not end before this does."""
    end = threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(workers.run_all(lambda _: end.wait(), range(jobs))))
    before = workers.taken
    thread.start()
    wait_for(lambda: workers.taken == before + jobs)
    try:
        yield
    finally:
        end.set()
        thread.join()


def workers_of(client: httpx.Client) -> WorkQueue:
    return client.app.state.pipeline.queue


def test_every_response_carries_a_request_id(client: httpx.Client) -> None:
    ids = {client.get(path).headers["x-request-id"] for path in ("/health/live", "/nowhere", "/v1/models")}
    assert len(ids) == 3


def test_a_valid_request_id_is_echoed_and_another_is_replaced(client: httpx.Client) -> None:
    for brought, echoed in (("my-id_1.~", True), ("a b", False), ("x" * 129, False), ("<script>", False)):
        answered = client.get("/health/live", headers={"X-Request-ID": brought}).headers["x-request-id"]
        assert (answered == brought) is echoed


def test_a_full_queue_answers_429_with_retry_after(serve) -> None:
    with serve(threads=1, queue=1) as client:
        with busy(workers_of(client), jobs=2):
            response = client.post("/v1/detect", files={"image": photo_of(1)})
            problem = expect(response, 429, "overloaded")
            assert response.elapsed.total_seconds() >= REFUSAL_SECONDS  # nobody gains by asking at once
            assert int(response.headers["retry-after"]) == problem["retry_after_seconds"] >= 1
        assert client.post("/v1/detect", files={"image": photo_of(1)}).status_code == 200


def test_a_verify_needs_room_for_both_photos(serve) -> None:
    with serve(threads=1, queue=1) as client, busy(workers_of(client), jobs=1):
        files = {"probe": photo_of(1), "reference": photo_of(1)}
        expect(client.post("/v1/verify", files=files), 429, "overloaded")
        assert workers_of(client).taken == 1


def test_a_client_that_hangs_up_frees_its_place(serve) -> None:
    with serve(threads=1, queue=8) as client, busy(workers_of(client), jobs=1):
        files = {"probe": photo_of(1), "reference": photo_of(1)}
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{client.base_url}/v1/verify", files=files, timeout=0.3)
        wait_for(lambda: workers_of(client).taken == 1)


def test_a_request_that_waits_too_long_times_out_and_frees_its_place(serve) -> None:
    with serve(threads=1, queue=8, request_seconds=0.2) as client, busy(workers_of(client), jobs=1):
        expect(client.post("/v1/detect", files={"image": photo_of(1)}), 503, "timed_out")
        wait_for(lambda: workers_of(client).taken == 1)


def test_a_photo_whose_request_is_over_is_decoded_no_further(serve, monkeypatch: pytest.MonkeyPatch) -> None:
    read = PhotoFile.read

    def read_slowly(self: PhotoFile, size: int = -1) -> bytes:
        time.sleep(0.2 if size == ImageFile.MAXBLOCK else 0)
        return read(self, size)

    photo = add_scans(encode(draw_photo(1), "JPEG", progressive=True), 80)  # over 16 s, at this pace
    with serve(threads=1, request_seconds=0.5) as client:
        monkeypatch.setattr(PhotoFile, "read", read_slowly)
        expect(client.post("/v1/detect", files={"image": photo}), 503, "timed_out")
        wait_for(lambda: workers_of(client).taken == 0, seconds=8)


def test_an_upload_that_never_ends_times_out(serve) -> None:
    with serve(request_seconds=0.2) as client, connect(client) as connection:
        connection.sendall(HALF_A_REQUEST)
        assert b"timed_out" in read_all(connection)


def test_a_client_that_leaves_in_the_middle_of_its_upload_is_no_error(serve, caplog) -> None:
    with serve() as client:
        with connect(client) as connection:
            connection.sendall(HALF_A_REQUEST)
        assert client.get("/health/live").status_code == 200
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_a_defect_is_answered_without_a_traceback_and_logged_with_its_request_id(serve, caplog) -> None:
    with serve() as client:
        client.app.state.pipeline.detector = None
        response = client.post(
            "/v1/detect", files={"image": photo_of(1)}, headers={"X-Request-ID": "find-me"}
        )
        problem = expect(response, 500, "internal")
        assert "NoneType" not in response.text
        assert "Traceback" not in response.text
    assert problem["request_id"] == "find-me"
    assert any("find-me" in record.getMessage() and record.exc_info for record in caplog.records)


def test_the_event_loop_answers_while_a_photo_is_worked_on(serve) -> None:
    """The detector waits until the event loop has answered another request."""
    with serve(threads=1) as client:
        answered = threading.Event()
        detector = client.app.state.pipeline.detector
        detect = detector.detect
        detector.detect = lambda image: answered.wait(20) and detect(image)
        with ThreadPoolExecutor() as executor:
            working = executor.submit(client.post, "/v1/detect", files={"image": photo_of(1)})
            wait_for(lambda: workers_of(client).taken == 1)
            assert client.get("/health/live").status_code == 200
            answered.set()
            assert working.result().json()["faces_found"] == 1


def test_a_client_that_hangs_up_while_its_photo_is_worked_on_frees_its_place_when_that_ends(serve) -> None:
    with serve(threads=1) as client:
        go_on = threading.Event()
        detector = client.app.state.pipeline.detector
        detect = detector.detect
        detector.detect = lambda image: go_on.wait(20) and detect(image)
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{client.base_url}/v1/detect", files={"image": photo_of(1)}, timeout=0.3)
        assert workers_of(client).taken == 1
        go_on.set()
        wait_for(lambda: workers_of(client).taken == 0)


def test_what_a_route_does_after_its_answer_is_not_cut_off(serve) -> None:
    with serve() as client:
        done = threading.Event()

        async def work_on() -> None:
            await asyncio.sleep(0.05)
            done.set()

        @client.app.post("/later")
        async def later(request: Request, tasks: BackgroundTasks) -> None:
            await request.body()
            tasks.add_task(work_on)

        assert client.post("/later", content=b"x").status_code == 200
        assert done.wait(5)


def test_uploads_under_way_may_hold_so_much_memory_and_no_more(serve) -> None:
    part = b'--edge\r\nContent-Disposition: form-data; name="image"; filename="a"\r\n\r\n'
    head = (
        b"POST /v1/detect HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=edge\r\n"
    )
    half_sent = head + b"Content-Length: 1000000\r\n\r\n" + part + bytes(600_000)
    with serve(max_upload_bytes=1_000_000) as client:
        uploads = client.app.state.uploads
        with connect(client) as connection:
            connection.sendall(half_sent)
            wait_for(lambda: uploads.taken > 600_000)
            with connect(client) as another:
                another.sendall(half_sent)
                assert b"overloaded" in read_all(another)
        wait_for(lambda: uploads.taken == 0)


def test_a_browser_may_call_from_a_listed_origin_only(serve) -> None:
    with serve(cors_origins="https://example.org, https://example.com") as client:
        for origin, allowed in (("https://example.com", True), ("https://evil.example", False)):
            response = client.get("/health/live", headers={"Origin": origin})
            assert (response.headers.get("access-control-allow-origin") == origin) is allowed
            assert response.headers["x-request-id"]


def test_without_origins_there_is_no_cors(client: httpx.Client) -> None:
    response = client.get("/health/live", headers={"Origin": "https://example.com"})
    assert "access-control-allow-origin" not in response.headers


def connect(client: httpx.Client) -> socket.socket:
    return socket.create_connection((client.base_url.host, client.base_url.port), timeout=10)


def read_all(connection: socket.socket) -> bytes:
    """The headers and body of one response."""
    received = b""
    while b"\r\n\r\n" not in received or b"}" not in received:
        received += connection.recv(65536)
    return received
