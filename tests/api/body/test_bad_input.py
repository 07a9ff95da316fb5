"""Whatever a client sends, it gets the documented problem, and the server stays as it was."""

import socket
from collections.abc import Iterator

import httpx
import pytest

from sameface.api.errors import PHRASES
from tests.api.body.memory import peak_megabytes
from tests.api.problems import expect
from tests.pictures import photo_of


def test_a_large_upload_is_cut_off_while_it_streams_in(client: httpx.Client) -> None:
    def body() -> Iterator[bytes]:
        yield b'--edge\r\nContent-Disposition: form-data; name="image"; filename="a.jpg"\r\n\r\n'
        for _ in range(60):
            yield b"\xff" * 1_000_000
        yield b"\r\n--edge--\r\n"

    before = peak_megabytes()
    headers = {"Content-Type": "multipart/form-data; boundary=edge"}
    problem = expect(client.post("/v1/detect", content=body(), headers=headers), 413, "image_too_large")
    assert problem["limit"] == 10_000_000
    assert peak_megabytes() - before < 45


def connect(client: httpx.Client) -> socket.socket:
    return socket.create_connection((client.base_url.host, client.base_url.port), timeout=20)


def test_a_large_upload_that_announces_its_size_is_refused_before_it_is_sent(client: httpx.Client) -> None:
    with connect(client) as connection:
        connection.sendall(
            b"POST /v1/detect HTTP/1.1\r\nHost: localhost\r\n"
            b"Content-Type: application/json\r\nContent-Length: 60000000\r\n\r\n"
        )
        answer = connection.recv(65536)
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"body_too_large" in answer


def test_a_refused_upload_does_not_go_on_for_ever(client: httpx.Client) -> None:
    with connect(client) as connection:
        connection.sendall(
            b"POST /v1/detect HTTP/1.1\r\nHost: localhost\r\n"
            b"Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            send_chunks(connection, 2_000)


def send_chunks(connection: socket.socket, megabytes: int) -> None:
    for _ in range(megabytes):
        connection.sendall(b"100000\r\n" + bytes(0x100000) + b"\r\n")


COSTLY_JSON = {
    "many keys": b"{" + b",".join(b'"%d":1' % number for number in range(500_000)) + b"}",
    "many lists": b"[" + b"[]," * 2_000_000 + b"[]]",
}


@pytest.mark.parametrize("body", COSTLY_JSON.values(), ids=COSTLY_JSON.keys())
def test_json_that_is_costly_to_parse_is_not_parsed(client: httpx.Client, body: bytes) -> None:
    problem = expect(
        client.post("/v1/detect", content=body, headers={"Content-Type": "application/json"}),
        422,
        "invalid_request",
    )
    assert "values" in problem["detail"]


def test_a_long_name_is_not_sent_back(client: httpx.Client) -> None:
    response = client.post("/v1/detect", json={"x" * 1_000_000: 1})
    expect(response, 422, "invalid_request")
    assert len(response.content) < 2_000


def test_many_parts_are_too_many(client: httpx.Client) -> None:
    expect(
        client.post("/v1/detect", data={f"part{number}": "" for number in range(200)}, files={"image": b""}),
        422,
        "invalid_request",
    )


def test_a_long_field_is_no_large_image(client: httpx.Client) -> None:
    files = {"image": photo_of(1)}
    expect(client.post("/v1/detect", files=files, data={"faces": "x" * 70_000}), 422, "invalid_request")


def test_a_large_json_body_is_cut_off(client: httpx.Client) -> None:
    def body() -> Iterator[bytes]:
        yield b'{"image": {"base64": "'
        for _ in range(60):
            yield b"A" * 1_000_000

    headers = {"Content-Type": "application/json"}
    expect(client.post("/v1/detect", content=body(), headers=headers), 413, "body_too_large")


def test_two_parts_of_one_name(client: httpx.Client) -> None:
    files = [("probe", photo_of(1)), ("probe", photo_of(1)), ("reference", photo_of(1))]
    assert "probe" in expect(client.post("/v1/verify", files=files), 422, "invalid_request")["detail"]


def test_a_rate_asked_of_a_bundle_without_calibration(client: httpx.Client) -> None:
    files = {"probe": photo_of(1), "reference": photo_of(1)}
    expect(client.post("/v1/verify", files=files, data={"target_fmr": 0.001}), 422, "not_calibrated")


BAD_FIELDS = [
    {"threshold": "nan"},
    {"threshold": "inf"},
    {"threshold": "1.5"},
    {"threshold": "high"},
    {"target_fmr": "nan"},
    {"target_fmr": "0"},
    {"target_fmr": "1"},
    {"threshold": "0.5", "target_fmr": "0.1"},
    {"faces": "all"},
    {"faces": "prettiest"},
    {"min_quality": "2"},
    {"treshold": "0.5"},
]


@pytest.mark.parametrize("fields", BAD_FIELDS, ids=str)
def test_a_field_that_does_not_fit(client: httpx.Client, fields: dict[str, str]) -> None:
    files = {"probe": photo_of(1), "reference": photo_of(1)}
    problem = expect(client.post("/v1/verify", files=files, data=fields), 422, "invalid_request")
    assert problem["errors"]


BAD_JSON = {
    "no JSON": b"{",
    "deeply nested": b"[" * 100_000,
    "a list": b"[]",
    "a missing photo": b'{"probe": {"base64": ""}}',
    "wrong base64": b'{"probe": {"base64": "!!!"}, "reference": {"base64": "AAAA"}}',
    "a photo as text": b'{"probe": "AAAA", "reference": "AAAA"}',
    "NaN": b'{"probe": {"base64": "AAAA"}, "reference": {"base64": "AAAA"}, "threshold": NaN}',
    "not UTF-8": b'{"probe": "\xff"}',
}


@pytest.mark.parametrize("body", BAD_JSON.values(), ids=BAD_JSON.keys())
def test_json_that_does_not_fit(client: httpx.Client, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    expect(client.post("/v1/verify", content=body, headers=headers), 422, "invalid_request")


BAD_FORMS = {
    "nothing": b"",
    "no closing boundary": b'--edge\r\nContent-Disposition: form-data; name="image"\r\n\r\nabc',
    "a part without a name": b"--edge\r\nContent-Disposition: form-data\r\n\r\nabc\r\n--edge--\r\n",
    "no boundary at all": b"abc",
    "an endless header": b"--edge\r\nX: " + b"a" * 20_000 + b"\r\n\r\nabc\r\n--edge--\r\n",
}


@pytest.mark.parametrize("body", BAD_FORMS.values(), ids=BAD_FORMS.keys())
def test_a_form_that_does_not_fit(client: httpx.Client, body: bytes) -> None:
    headers = {"Content-Type": "multipart/form-data; boundary=edge"}
    expect(client.post("/v1/detect", content=body, headers=headers), 422, "invalid_request")


def test_a_missing_part(client: httpx.Client) -> None:
    problem = expect(client.post("/v1/verify", files={"probe": photo_of(1)}), 422, "invalid_request")
    assert "reference" in problem["detail"]
    problem = expect(client.post("/v1/verify", files={"reference": photo_of(1)}), 422, "invalid_request")
    assert problem["errors"][0]["field"] == "probe"


def test_a_field_of_another_name_is_answered_with_the_names_that_are_known(client: httpx.Client) -> None:
    problem = expect(client.post("/v1/detect", files={"file": photo_of(1)}), 422, "invalid_request")
    assert {"field": "file", "problem": "is not known here"} in problem["errors"]
    assert {"field": "image", "problem": "is missing"} in problem["errors"]
    assert "The fields of this request are image, faces" in problem["detail"]


def test_problems_are_said_in_words_of_our_own(client: httpx.Client) -> None:
    files = {"probe": photo_of(1)}
    wrong = {"person_id": "a b", "collection": "..", "threshold": "2"}
    problem = expect(client.post("/v1/verify", files=files, data=wrong), 422, "invalid_request")
    said = {error["field"]: error["problem"] for error in problem["errors"]}
    assert said["person_id"] == said["collection"] == PHRASES["string_pattern_mismatch"]
    assert said["threshold"] == "should be less than or equal to 1"
    problem = expect(client.post("/v1/verify", files=files), 422, "invalid_request")
    assert "Value error" not in problem["detail"]


OPTIONS_IN_THE_ADDRESS = {
    "/v1/verify?target_fmr=1e-5&threshold=0.9": "options are fields of the form or of the JSON",
    "/v1/detect?faces=only": "options are fields of the form or of the JSON",
    "/v1/collections/staff/people?name=Ada": "options are fields of the form or of the JSON",
    "/v1/collections/staff/identify?threshold=0.9": "options are fields of the form or of the JSON",
    "/v1/collections/staff/identify/batch?limt=1": "the address takes limit",
}


@pytest.mark.parametrize(("path", "hint"), OPTIONS_IN_THE_ADDRESS.items())
def test_an_unknown_option_in_the_address_is_refused(client: httpx.Client, path: str, hint: str) -> None:
    problem = expect(client.post(path, files={"image": photo_of(1)}), 422, "invalid_request")
    assert hint in problem["detail"]
    assert problem["errors"][0]["field"].startswith("query.")


def test_a_list_refuses_options_that_it_does_not_know(client: httpx.Client, staff: str) -> None:
    assert client.get(f"{staff}/people?limit=1").status_code == 200
    problem = expect(client.get(f"{staff}/people?limt=1"), 422, "invalid_request")
    assert "limt: the address takes limit, cursor" in problem["detail"]
    assert "takes none" in expect(client.get(f"{staff}?x=1"), 422, "invalid_request")["detail"]


def test_the_input_is_never_quoted(client: httpx.Client) -> None:
    response = client.post("/v1/verify", json={"probe": {"base64": "c2VjcmV0!"}, "reference": "c2VjcmV0"})
    assert "c2VjcmV0" not in response.text


@pytest.mark.parametrize("content_type", ["image/jpeg", "text/plain", "", "multipart/mixed"])
def test_another_content_type(client: httpx.Client, content_type: str) -> None:
    headers = {"Content-Type": content_type} if content_type else {}
    answer = client.post("/v1/detect", content=photo_of(1), headers=headers)
    assert "curl -F image=@photo.jpg" in expect(answer, 415, "unsupported_media_type")["detail"]


def test_an_unknown_address_and_a_wrong_method(client: httpx.Client) -> None:
    expect(client.get("/v2/verify"), 404, "not_found")
    response = client.get("/v1/verify")
    expect(response, 405, "method_not_allowed")
    assert response.headers["allow"] == "POST"


@pytest.mark.parametrize("boundary", ["x" * 300, "a b", ""])
def test_a_boundary_that_cannot_be_one_is_refused(client: httpx.Client, boundary: str) -> None:
    body = f"--{boundary}\r\n\r\n".encode()
    headers = {"content-type": f"multipart/form-data; boundary={boundary}"}
    expect(client.post("/v1/detect", content=body, headers=headers), 422, "invalid_request")
