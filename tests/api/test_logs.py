"""Log lines: text or JSON, one form for all, and about nobody."""

import json
import logging
import re
import subprocess
import sys

import httpx
import pytest

from sameface.api.logs import JsonLines
from sameface.model.access.keys import hash_secret
from tests.api.collections import make_collection
from tests.api.keys import make_key
from tests.api.middleware.test_traceparent import SPAN, TRACE
from tests.conftest import address_of
from tests.pictures import photo_of

ACCESS = {"time", "level", "logger", "message", "method", "route", "status", "ms", "caller", "request_id"}


def stop_and_read(process: subprocess.Popen[str]) -> list[str]:
    process.terminate()
    return process.communicate(timeout=20)[0].splitlines()


def test_every_line_of_a_server_is_one_json_object(start, tmp_path) -> None:
    secret, entry = make_key("read+write")
    process = start("--log-format", "json", SAMEFACE_DATA=str(tmp_path), SAMEFACE_API_KEYS=entry)
    address = address_of(process)
    with httpx.Client(base_url=address, headers={"Authorization": f"Bearer {secret}"}) as client:
        staff = make_collection(client)
        headers = {"x-request-id": "mine", "traceparent": f"00-{TRACE}-{SPAN}-01"}
        client.get(f"{staff}/people/ada-lovelace", headers=headers)
        client.get("/v1/models", headers={"Authorization": "Bearer sf_wrong"})
    written = stop_and_read(process)
    lines = [json.loads(line) for line in written if line]
    assert {line["logger"] for line in lines} >= {"sameface.access", "uvicorn.error"}
    asked = next(line for line in lines if line.get("request_id") == "mine")
    assert asked.keys() == ACCESS | {"trace_id"}
    assert (asked["method"], asked["route"], asked["status"], asked["trace_id"]) == (
        *("GET", "/v1/collections/{collection}/people/{person_id}", 404),
        TRACE,
    )
    assert asked["caller"] == f"environment-{hash_secret(secret)[:8]}"
    assert asked["level"] == "info"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", asked["time"])
    refused = next(line for line in lines if line.get("status") == 401)
    assert refused["caller"] == "anonymous"
    assert not re.search(f"lovelace|{secret}|sf_wrong", "".join(written))


def test_text_is_the_default_and_names_the_caller(start) -> None:
    process = start()
    address = address_of(process)
    httpx.post(f"{address}/v1/detect", files={"image": photo_of(1)}, headers={"x-request-id": "mine"})
    lines = stop_and_read(process)
    [asked] = [line for line in lines if line.endswith(" mine")]
    assert re.search(r" INFO sameface\.access: POST /v1/detect 200 \d+ ms anonymous mine$", asked)


def test_an_exception_is_one_field_of_one_line() -> None:
    try:
        raise ValueError("broken\nin two")
    except ValueError:
        record = logging.LogRecord("library", logging.ERROR, "", 0, "it %s", ("failed",), sys.exc_info())
    [line] = JsonLines().format(record).splitlines()
    said = json.loads(line)
    assert said.keys() == {"time", "level", "logger", "message", "exception"}
    assert (said["level"], said["message"]) == ("error", "it failed")
    assert said["exception"].startswith("Traceback")
    assert said["exception"].endswith("in two")


def test_a_line_within_a_request_has_its_ids(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(JsonLines().format(record))
    monkeypatch.setattr(client.app.state.pipeline, "detect", None)  # calling it fails
    logging.getLogger("sameface.requests").addHandler(handler)
    try:
        client.post("/v1/detect", files={"image": photo_of(1)}, headers={"x-request-id": "mine"})
    finally:
        logging.getLogger("sameface.requests").removeHandler(handler)
    [said] = map(json.loads, lines)
    assert said["request_id"] == "mine"
    assert "TypeError" in said["exception"]
