"""Embeddings: of unit length, of their bundle, whatever they were computed beside."""

import threading
from pathlib import Path

import numpy as np
import pytest

from sameface.model.faces import Floats
from sameface.model.photo.embed import Embedder
from sameface.model.runtime.session_pool import open_sessions
from tests.networks import build_recogniser


@pytest.fixture
def embedder(tmp_path: Path) -> Embedder:
    bundle = build_recogniser(tmp_path)
    return Embedder(bundle, open_sessions(bundle, "cpu", tmp_path / "cache"))


def test_embeddings_have_unit_length_and_the_bundles_identity(embedder: Embedder) -> None:
    crops = np.random.default_rng(4).integers(0, 256, (5, 112, 112, 3), np.uint8)
    embeddings = embedder.embed(list(crops))
    assert [np.linalg.norm(one.values) for one in embeddings] == pytest.approx([1] * 5, abs=1e-6)
    assert {one.identity for one in embeddings} == {embedder.bundle.identity}


@pytest.mark.parametrize("batch_size", [2, 4, 32])
def test_embeddings_do_not_depend_on_the_batch(embedder: Embedder, batch_size: int) -> None:
    crops = list(np.random.default_rng(4).integers(0, 256, (5, 112, 112, 3), np.uint8))
    alone = np.array([one.values for one in embedder.embed(crops)])
    embedder.sessions.batch_size = batch_size
    together = Embedder(embedder.bundle, embedder.sessions)
    batched = np.array([one.values for one in together.embed(crops)])
    together.close()
    assert batched == pytest.approx(alone, abs=1e-5)


def test_the_crops_of_a_group_photo_are_spread_over_the_sessions(
    embedder: Embedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crops = list(np.random.default_rng(4).integers(0, 256, (4, 112, 112, 3), np.uint8))
    runtime = open_sessions(embedder.bundle, "cpu", tmp_path / "cache", threads=2)
    run, two = runtime.run, threading.Barrier(2, timeout=10)

    def run_beside_another(pixels: Floats) -> list[Floats]:
        two.wait()
        return run(pixels)

    monkeypatch.setattr(runtime, "run", run_beside_another)
    spread = Embedder(embedder.bundle, runtime)
    together = [one.values for one in spread.embed(crops)]
    spread.close()
    assert np.array_equal(together, [one.values for one in embedder.embed(crops)])


def test_no_crops_are_no_embeddings(embedder: Embedder) -> None:
    assert embedder.embed([]) == []
