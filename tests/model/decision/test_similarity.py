"""Similarity of embeddings."""

import math

import numpy as np
import pytest

from sameface.model.decision.similarity import measure_similarity
from sameface.model.errors import BundleRefused, ModelMismatch
from sameface.model.faces import Embedding
from sameface.model.photo.embed import to_unit


def embedding(*values: float, identity: str = "one") -> Embedding:
    return Embedding(np.array(values, np.float32), identity)


@pytest.mark.parametrize("degrees", [0, 30, 60, 90, 120, 180])
def test_similarity_is_the_cosine(degrees: float) -> None:
    angle = math.radians(degrees)
    turned = embedding(math.cos(angle), math.sin(angle))
    assert measure_similarity(embedding(1, 0), turned) == pytest.approx(math.cos(angle), abs=1e-6)


@pytest.mark.parametrize(("sign", "similarity"), [(1, 1.0), (-1, -1.0)])
def test_rounding_never_leads_beyond_one(sign: int, similarity: float) -> None:
    long = embedding(1.0001, 0)
    assert measure_similarity(long, embedding(sign * 1.0001, 0)) == similarity


def test_the_order_does_not_matter() -> None:
    random = np.random.default_rng(0)
    one, other = (Embedding(to_unit(random.normal(size=128)), "one") for _ in range(2))
    assert measure_similarity(one, other) == measure_similarity(other, one)


def test_a_similarity_is_a_plain_number_of_six_digits() -> None:
    similarity = measure_similarity(embedding(0.6, 0.8), embedding(1 / 3, math.sqrt(8) / 3))
    assert type(similarity) is float
    assert similarity == round(similarity, 6)


def test_embeddings_of_two_models_are_not_compared() -> None:
    with pytest.raises(ModelMismatch):
        measure_similarity(embedding(1, 0), embedding(1, 0, identity="other"))


def test_the_length_of_an_embedding_does_not_count() -> None:
    values = np.array([3, 4], np.float32)
    assert to_unit(values) == pytest.approx(np.array([0.6, 0.8]))
    assert to_unit(values * 1000) == pytest.approx(to_unit(values))


@pytest.mark.parametrize("values", [(0.0, 0.0), (math.nan, 1.0), (math.inf, 1.0)])
def test_an_embedding_without_a_direction_is_refused(values: tuple[float, ...]) -> None:
    with pytest.raises(BundleRefused, match="without a direction"):
        to_unit(np.array(values, np.float32))
