"""Health and models: what the server says of itself."""

import time

import httpx
import pytest

from sameface.api.store_check import CHECK_SECONDS
from sameface.model.bundles.bundle import load_bundle
from tests.api.problems import expect
from tests.conftest import wait_for
from tests.pictures import photo_of


def test_the_server_lives_before_it_is_ready(serve, tmp_path) -> None:
    """A folder without bundles never gets ready."""
    with serve(recognizer=tmp_path, wait_until_ready=False) as client:
        assert client.get("/health/live").json() == {"status": "alive"}
        problem = expect(client.get("/health/ready"), 503, "not_ready")
        assert problem["retry_after_seconds"] > 0
        expect(client.post("/v1/detect", files={"image": photo_of(1)}), 503, "not_ready")
        expect(client.get("/v1/models"), 503, "not_ready")


def test_whatever_keeps_it_from_loading_is_said(serve, data, caplog) -> None:
    with serve(data=data / "models" / "detector" / "tiny.onnx", wait_until_ready=False) as client:
        wait_for(lambda: client.app.state.failure is not None)
        assert "log" in expect(client.get("/health/ready"), 503, "not_ready")["detail"]
    assert any("cannot serve" in record.getMessage() for record in caplog.records)


def test_ready_says_truthfully_what_it_runs_on(client: httpx.Client) -> None:
    answer = client.get("/health/ready").json()
    session = client.app.state.pipeline.embedder.sessions._idle.get()
    client.app.state.pipeline.embedder.sessions._idle.put(session)
    assert answer["provider"] == session.provider
    assert (answer["device"], answer["recognizer"]) == ("cpu", "tiny-recogniser")


def test_models_are_listed_with_hash_and_licence(client: httpx.Client, data) -> None:
    answer = client.get("/v1/models").json()
    bundle = load_bundle(data / "models" / "recogniser", "recogniser")
    recogniser = next(item for item in answer["items"] if item["kind"] == "recogniser")
    assert answer["next_cursor"] is None
    assert (recogniser["sha256"], recogniser["identity"]) == (bundle.sha256, bundle.identity)
    assert recogniser["licence"] == "Apache-2.0"


@pytest.mark.sqlite
def test_it_is_not_ready_while_the_store_cannot_be_read(serve, tmp_path) -> None:
    gallery, aside = tmp_path / "gallery.db", tmp_path / "aside.db"
    with serve(data=tmp_path) as client:
        gallery.rename(aside)
        wait_for(lambda: client.get("/health/ready").status_code == 503)
        problem = expect(client.get("/health/ready"), 503, "not_ready")
        assert problem["detail"].startswith("The store cannot be read: ")
        assert client.get("/health/live").status_code == 200
        aside.rename(gallery)
        wait_for(lambda: client.get("/health/ready").status_code == 200)


def test_many_who_ask_share_one_look_at_the_store(client: httpx.Client, monkeypatch) -> None:
    looks, store = [], client.app.state.gallery.store
    monkeypatch.setattr(store, "refuse_unreadable", lambda: looks.append(time.monotonic()))
    start = time.monotonic()
    for _ in range(50):
        assert client.get("/health/ready").status_code == 200
    assert len(looks) <= 1 + (time.monotonic() - start) / CHECK_SECONDS
