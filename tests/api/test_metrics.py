"""What Prometheus reads."""

import re
import threading

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from sameface.api.metrics import MOST_CALLERS, SHARED, Metrics
from sameface.model.access.keys import hash_secret
from tests.api.collections import enrol, identify, make_collection
from tests.api.keys import make_key
from tests.api.problems import expect
from tests.api.routes.test_verify import verify
from tests.conftest import Serve
from tests.pictures import photo_of


def read(client: httpx.Client) -> dict[str, float]:
    """Every sample by its name and labels."""
    response = client.get("/metrics")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    return {
        sample.name + "".join(f"|{value}" for _, value in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
    }


@pytest.fixture
def fresh(serve: Serve, tmp_path):
    with serve(data=tmp_path) as client:
        yield client


def test_requests_are_counted_by_route_and_never_by_address(fresh: httpx.Client) -> None:
    staff = make_collection(fresh)
    enrol(fresh, staff, photo_of(1), person_id="ada")
    verify(fresh, photo_of(1), photo_of(1))
    expect(verify(fresh, photo_of(1), photo_of()), 422, "no_face_found")
    fresh.get("/nowhere/at/all")
    seen = read(fresh)
    assert seen["sameface_requests_total|anonymous|/v1/verify|200"] == 1
    assert seen["sameface_requests_total|anonymous|/v1/verify|422"] == 1
    assert seen["sameface_refused_total|no_face_found"] == 1
    assert seen["sameface_requests_total|anonymous|/v1/collections/{collection}/people|201"] == 1
    assert seen["sameface_requests_total|anonymous|none|404"] == 1
    assert seen["sameface_request_seconds_count|/v1/verify"] == 2
    text = fresh.get("/metrics").text
    assert not re.search(r"ada|staff|nowhere", text)


def test_stages_faces_and_similarities_are_seen(fresh: httpx.Client) -> None:
    verify(fresh, photo_of(1, 2), photo_of(1))
    staff = make_collection(fresh)
    enrol(fresh, staff, photo_of(1), person_id="ada")
    before = read(fresh)
    identify(fresh, staff, photo_of(1, 2))
    seen = read(fresh)
    for stage in ("queue", "decode", "detect", "align", "embed"):
        assert seen[f"sameface_stage_seconds_count|{stage}"] == 4
    assert seen["sameface_stage_seconds_count|search"] == 1
    assert seen["sameface_faces_per_photo_sum"] == 2 + 1 + 1 + 2
    assert seen["sameface_similarity_count|verify"] == 1
    assert seen["sameface_similarity_count|identify"] == 2
    assert seen["sameface_batch_size_count"] > before["sameface_batch_size_count"]
    assert seen["sameface_queue_photos"] == 0


def test_the_gallery_and_what_it_runs_on_are_shown(fresh: httpx.Client) -> None:
    staff = make_collection(fresh)
    enrol(fresh, staff, photo_of(1), photo_of(1, noise=1), person_id="ada")
    seen = read(fresh)
    assert [seen[f"sameface_gallery_{name}"] for name in ("collections", "people", "faces")] == [1, 1, 2]
    assert seen["sameface_gallery_lag"] > 0
    identify(fresh, staff, photo_of(1))
    assert read(fresh)["sameface_gallery_lag"] == 0
    assert seen["sameface_runtime|tiny-detector|cpu|CPUExecutionProvider|tiny-recogniser"] == 1


def test_a_server_that_is_not_ready_has_metrics_already(serve: Serve, tmp_path) -> None:
    with serve(data=tmp_path, wait_until_ready=False) as client:
        assert client.get("/metrics").status_code == 200


def test_a_process_that_starts_just_now_does_not_spoil_the_others(
    fresh: httpx.Client, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched, shared = fresh.app.state.metrics, tmp_path / "shared"
    shared.mkdir()
    half_made = shared / "counter_1.db"
    half_made.touch()
    monkeypatch.setenv(SHARED, str(shared))
    soon = threading.Timer(0.05, lambda: half_made.write_bytes(bytes(1024)))
    soon.start()
    assert b"sameface_gallery_people" in watched.collect()
    soon.join()


def test_requests_are_counted_by_the_key_that_asked(serve: Serve) -> None:
    secret, entry = make_key("read")
    with serve(api_keys=entry) as client:
        client.get("/v1/models", headers={"Authorization": f"Bearer {secret}"})
        client.get("/v1/models", headers={"Authorization": "Bearer sf_wrong"})
        seen = read(client)
    assert seen[f"sameface_requests_total|environment-{hash_secret(secret)[:8]}|/v1/models|200"] == 1
    assert seen["sameface_requests_total|anonymous|/v1/models|401"] == 1


def test_beyond_a_number_of_callers_the_others_are_counted_together() -> None:
    metrics = Metrics()
    for number in range(MOST_CALLERS + 10):
        metrics.request("/v1/verify", 200, f"key-{number}", 0.1, None)
    metrics.request("/v1/verify", 200, "key-0", 0.1, None)
    text = metrics.collect().decode()
    assert len(re.findall("^sameface_requests_total{", text, re.MULTILINE)) == MOST_CALLERS + 1
    assert 'caller="others",route="/v1/verify",status="200"} 10.0' in text
    assert 'caller="key-0",route="/v1/verify",status="200"} 2.0' in text
