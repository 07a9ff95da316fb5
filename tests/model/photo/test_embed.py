"""Embeddings: of unit length, of their bundle, whatever they were computed beside."""

import threading
from pathlib import Path

import numpy as np
import pytest

from sameface.model.bundles.bundle import Bundle
from sameface.model.errors import InvalidEmbedding, ModelMismatch
from sameface.model.faces import Floats
from sameface.model.photo.embed import Embedder, accept_embedding
from sameface.model.runtime.session_pool import open_sessions
from tests.model.people import random_units
from tests.networks import DIMENSION, build_recogniser


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


@pytest.mark.parametrize("factor", [1, 3])
def test_a_brought_embedding_is_taken_at_unit_length(bundle: Bundle, factor: float) -> None:
    [values] = random_units(1, DIMENSION)
    embedding = accept_embedding(bundle, (values * factor).tolist(), "tiny-recogniser")
    np.testing.assert_allclose(embedding.values, values, atol=1e-6)
    assert embedding.normalised is (factor != 1)


def test_an_embedding_of_another_model_is_refused(bundle: Bundle) -> None:
    with pytest.raises(ModelMismatch, match="arcface"):
        accept_embedding(bundle, random_units(1, DIMENSION)[0], "arcface")


@pytest.mark.parametrize(
    "values", [[], [0.0] * DIMENSION, [float("nan")] * DIMENSION, [1.0] * (DIMENSION + 1)]
)
def test_numbers_that_are_no_embedding_are_refused(bundle: Bundle, values: list[float]) -> None:
    with pytest.raises(InvalidEmbedding):
        accept_embedding(bundle, values, None)
