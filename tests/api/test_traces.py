"""OpenTelemetry: a span per request and per stage, sent to a real receiver, about nobody."""

import logging
import subprocess
import sys
from collections import Counter

import httpx
import pytest

from sameface.api.traces import ENDPOINTS, find_traces_fault, open_traces
from tests.api.collections import enrol, identify, make_collection
from tests.api.middleware.test_traceparent import SPAN, TRACE
from tests.api.otlp_receiver import Receiver, receiving
from tests.api.problems import expect
from tests.api.routes.test_verify import verify
from tests.conftest import Serve, address_of, wait_for
from tests.pictures import photo_of

SERVER, INTERNAL = 2, 1
PHOTO = ("queue", "decode", "detect", "align", "embed")


@pytest.fixture(autouse=True)
def _without_settings_of_the_developer(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_PROTOCOL", *ENDPOINTS):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch):
    with receiving() as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.address)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
        yield receiver


def stages_below(receiver: Receiver, name: str) -> Counter[str]:
    [request] = receiver.named(name)
    below = receiver.below(request)
    assert {span.trace_id for span in below} == {request.trace_id}
    assert {span.kind for span in below} == {INTERNAL}
    for span in below:
        assert request.start - 1e6 <= span.start <= span.end <= request.end + 1e6
    return Counter(span.name for span in below)


def test_every_request_is_a_span_with_a_span_per_stage_below(
    serve: Serve, receiver: Receiver, tmp_path
) -> None:
    with serve(data=tmp_path) as client:
        verify(client, photo_of(1), photo_of(1))
        staff = make_collection(client)
        enrol(client, staff, photo_of(1), person_id="ada-lovelace", name="Ada Lovelace")
        identify(client, staff, photo_of(1))
    assert stages_below(receiver, "POST /v1/verify") == Counter(dict.fromkeys(PHOTO, 2))
    enrolled = stages_below(receiver, "POST /v1/collections/{collection}/people")
    assert enrolled == Counter({**dict.fromkeys(PHOTO, 1), "store": 2})
    found = stages_below(receiver, "POST /v1/collections/{collection}/identify")
    assert found == Counter(dict.fromkeys((*PHOTO, "search"), 1))
    assert {span.resource["service.name"] for span in receiver.spans} == {"sameface"}


def test_a_span_says_what_the_access_log_says_and_nothing_of_anybody(
    serve: Serve, receiver: Receiver, tmp_path
) -> None:
    with serve(data=tmp_path) as client:
        staff = make_collection(client)
        enrol(client, staff, photo_of(1), person_id="ada-lovelace", name="Ada Lovelace")
        client.get(f"{staff}/people/ada-lovelace", headers={"x-request-id": "mine"})
        expect(verify(client, photo_of(1), photo_of()), 422, "no_face_found")
        client.request("PROPFIND", "/nowhere/ada-lovelace")
    [looked] = receiver.named("GET /v1/collections/{collection}/people/{person_id}")
    assert looked.kind == SERVER
    assert looked.attributes == {
        "http.request.method": "GET",
        "http.route": "/v1/collections/{collection}/people/{person_id}",
        "http.response.status_code": 200,
        "sameface.caller": "anonymous",
        "sameface.request_id": "mine",
    }
    [refused] = receiver.named("POST /v1/verify")
    assert (refused.attributes["error.type"], refused.failed) == ("no_face_found", False)
    [lost] = receiver.named("HTTP")
    assert (lost.attributes["http.request.method"], lost.attributes["http.route"]) == ("_OTHER", "none")
    assert "lovelace" not in repr(receiver.spans).lower()
    assert staff.rpartition("/")[2] not in repr(receiver.spans)


def test_a_callers_trace_goes_on_and_is_passed_on(serve: Serve, receiver: Receiver) -> None:
    with serve() as client:
        sent = {"traceparent": f"00-{TRACE}-{SPAN}-01", "tracestate": "vendor=1"}
        answered = client.get("/v1/models", headers=sent).headers["traceparent"]
        client.get("/v1/calibrations", headers={"traceparent": f"00-{TRACE}-{SPAN}-00"})
        client.get("/v1/collections", headers={"traceparent": "nonsense"})
    [span] = receiver.named("GET /v1/models")
    assert (span.trace_id, span.parent_id) == (TRACE, SPAN)
    assert answered == f"00-{TRACE}-{span.span_id}-01"
    assert receiver.named("GET /v1/calibrations") == []  # its caller does not sample it
    [fresh] = receiver.named("GET /v1/collections")
    assert (fresh.trace_id != TRACE, fresh.parent_id) == (True, "")


def test_a_failure_of_the_server_is_an_error(serve: Serve, receiver: Receiver, monkeypatch) -> None:
    with serve() as client:
        monkeypatch.setattr(client.app.state.pipeline, "detect", None)  # calling it fails
        expect(client.post("/v1/detect", files={"image": photo_of(1)}), 500, "internal")
    [span] = receiver.named("POST /v1/detect")
    assert (span.failed, span.attributes["error.type"]) == (True, "internal")


def test_the_standard_variables_are_honoured(serve: Serve, receiver: Receiver, monkeypatch) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "gate-7")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20of-the-collector")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    with serve() as client:
        client.get("/v1/models")
    [span] = receiver.named("GET /v1/models")
    assert span.resource["service.name"] == "gate-7"
    assert span.resource["deployment.environment.name"] == "test"
    assert receiver.headers[-1]["authorization"] == "Bearer of-the-collector"
    assert receiver.headers[-1]["content-encoding"] == "gzip"


def test_two_workers_both_send(start, receiver: Receiver, tmp_path) -> None:
    process = start("--workers", "2", SAMEFACE_DATA=str(tmp_path))
    address = address_of(process)

    def both_were_asked() -> bool:
        httpx.get(f"{address}/v1/models")
        return len({span.resource["process.pid"] for span in receiver.spans}) == 2

    wait_for(both_were_asked)
    process.terminate()
    assert process.wait(timeout=20) == 0


def test_a_collector_that_is_away_harms_no_request_and_no_stop(start, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    process = start(SAMEFACE_DATA=str(tmp_path))
    address = address_of(process)
    assert httpx.get(f"{address}/v1/models").status_code == 200
    process.terminate()
    process.wait(timeout=20)


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_SDK_DISABLED": "true"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_TRACES_EXPORTER": "none"},
    ],
)
def test_where_nobody_wants_traces_nothing_is_imported(variables: dict[str, str], monkeypatch) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    asked = "import sys, sameface.api.traces as it; print(it.open_traces(), 'opentelemetry' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout == "None False\n"


def test_what_keeps_traces_away_is_said(monkeypatch: pytest.MonkeyPatch, caplog) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    assert find_traces_fault() is None
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    with caplog.at_level(logging.WARNING, "sameface.traces"):
        assert open_traces() is None
    assert "http/protobuf" in caplog.text
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_PROTOCOL")
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    assert "pip install '.[otel]'" in find_traces_fault()
