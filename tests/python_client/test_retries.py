"""What is sent again, what is not, and with which key."""

import pytest

import sameface_client
from sameface_client import requests
from tests.python_client.scripted import BREAK, Reply, answer_with

DETECTED = Reply(body={"faces": [], "faces_found": 0, "timings_ms": {}})
ENROLLED = Reply(201, {"person_id": "ada", "faces": [], "rejected": [], "warnings": []})
BUSY = Reply(429, code="overloaded", retry_after="0")
PROXY = Reply(502, body="<html>")


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "FIRST_WAIT_SECONDS", 0.01)


@pytest.mark.parametrize("failure", [BUSY, Reply(503, code="not_ready", retry_after="0"), PROXY, BREAK])
def test_a_question_is_asked_again(failure: Reply | str) -> None:
    with answer_with(failure, failure, DETECTED) as server, sameface_client.connect(server.url) as faces:
        assert faces.detect(b"photo").faces_found == 0
    assert len(server.asked) == 3


@pytest.mark.parametrize("failure", [BUSY, PROXY, BREAK])
def test_an_enrolment_is_sent_again_with_the_same_key(failure: Reply | str) -> None:
    with answer_with(failure, ENROLLED, ENROLLED) as server, sameface_client.connect(server.url) as faces:
        staff = faces.collection("staff")
        staff.enroll("ada", [b"photo"])
        staff.add_faces("ada", embeddings=[[1.0]])
    first, second, other = server.keys()
    assert first
    assert first == second
    assert other not in (None, first)


@pytest.mark.parametrize("failure", [PROXY, BREAK])
def test_what_may_have_been_deleted_is_not_deleted_again(failure: Reply | str) -> None:
    with (
        answer_with(failure, Reply(204)) as server,
        sameface_client.connect(server.url) as faces,
        pytest.raises(sameface_client.SamefaceError) as raised,
    ):
        faces.collection("staff").forget("ada")
    assert raised.value.code in ("connection_failed", "unexpected_answer")
    assert len(server.asked) == 1


def test_a_deletion_that_was_refused_for_now_is_sent_again() -> None:
    with answer_with(BUSY, Reply(204)) as server, sameface_client.connect(server.url) as faces:
        faces.collection("staff").forget("ada")
    assert [method for method, _, _ in server.asked] == ["DELETE", "DELETE"]


@pytest.mark.parametrize(
    "failure",
    [
        Reply(422, code="no_face_found"),
        Reply(500, code="internal"),
        Reply(503, code="store_damaged"),
        Reply(503, code="timed_out"),
        Reply(429, code="overloaded", retry_after="3600"),
    ],
)
def test_what_waiting_does_not_mend_is_raised_at_once(failure: Reply) -> None:
    with (
        answer_with(failure) as server,
        sameface_client.connect(server.url) as faces,
        pytest.raises(sameface_client.SamefaceError) as raised,
    ):
        faces.detect(b"photo")
    assert (raised.value.code, raised.value.status) == (failure.code, failure.status)
    assert raised.value.request_id == "r1"


def test_the_last_refusal_is_raised() -> None:
    with (
        answer_with(BUSY, BUSY, BUSY) as server,
        sameface_client.connect(server.url, retries=2) as faces,
        pytest.raises(sameface_client.Overloaded),
    ):
        faces.detect(b"photo")
    assert len(server.asked) == 3


def test_a_block_of_a_batch_is_sent_again_with_the_same_key() -> None:
    line = Reply(body={"id": "0", "person_id": "ada", "faces": [], "warnings": []})
    with answer_with(BREAK, line) as server, sameface_client.connect(server.url) as faces:
        entries = [sameface_client.EnrollEntry("mine", b"photo")]
        [answer] = faces.collection("staff").enroll_many(entries)
    assert (answer.id, answer.person_id) == ("mine", "ada")
    assert server.keys()[0]
    assert server.keys()[0] == server.keys()[1]


def test_entries_that_a_server_gives_up_fail_with_its_reason() -> None:
    given_up = Reply(body={"id": None, "error": {"code": "body_too_large", "detail": "Full.", "status": 413}})
    with answer_with(given_up) as server, sameface_client.connect(server.url) as faces:
        [answer] = faces.collection("staff").identify_many([("mine", b"photo")])
    assert (answer.id, type(answer.error)) == ("mine", sameface_client.BodyTooLarge)


def test_a_server_that_is_not_there_is_an_error_of_its_own() -> None:
    with answer_with() as server:
        pass
    with (
        sameface_client.connect(server.url, retries=1) as faces,
        pytest.raises(sameface_client.ConnectionFailed, match=r"127\.0\.0\.1") as raised,
    ):
        faces.detect(b"photo")
    assert (raised.value.code, raised.value.status) == ("connection_failed", None)
