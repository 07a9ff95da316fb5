"""Two recognisers on the same faces: the same rates as measured alone, and a difference that pairs them."""

import numpy as np
import pytest

from sameface.model.measurement.intervals import measure_rates
from sameface.model.measurement.paired_rates import compare_rates
from sameface.model.measurement.scores import LabelledEmbeddings, score_all_pairs

PEOPLE, EACH, DIMENSION = 60, 4, 16


def draw_faces(noise: float, seed: int = 1) -> LabelledEmbeddings:
    """Faces of 60 people; the more `noise`, the less a person's faces are alike."""
    random = np.random.default_rng(seed)
    owners = np.repeat(np.arange(PEOPLE), EACH)
    rows = random.normal(size=(PEOPLE, DIMENSION))[owners]
    rows = rows + noise * random.normal(size=rows.shape)
    return LabelledEmbeddings((rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32), owners)


def test_the_rates_are_those_of_each_alone() -> None:
    first, second = draw_faces(0.6), draw_faces(0.9)
    [paired] = compare_rates(first, second, [1e-2, 1e-5])  # 28,000 impostor pairs do not support 1e-5
    for faces, rate in ((first, paired.first), (second, paired.second)):
        threshold = score_all_pairs(faces)[1].find_threshold(1e-2)
        assert rate == measure_rates(faces, [threshold])[0].fnmr
    assert paired.fmr == 1e-2
    assert paired.difference.value == pytest.approx(paired.second.value - paired.first.value)
    assert 0 < paired.difference.low < paired.difference.value < paired.difference.high
    assert not paired.loses_at_most(0.1)


def test_a_recogniser_beside_itself_differs_by_nothing() -> None:
    faces = draw_faces(0.8)
    [paired] = compare_rates(faces, faces, [1e-2])
    assert paired.first.value > 0
    assert (paired.difference.value, paired.difference.low, paired.difference.high) == (0, 0, 0)
    assert paired.loses_at_most(0)


def test_chance_is_no_loss() -> None:
    """Other noise of the same size: a difference, whose interval includes none."""
    [paired] = compare_rates(draw_faces(0.8), draw_faces(0.8, seed=2), [1e-2])
    assert paired.difference.value != 0
    assert paired.difference.low < 0 < paired.difference.high
    assert paired.loses_at_most(0.1)


def test_nothing_is_compared_without_genuine_pairs() -> None:
    faces = draw_faces(0.8)
    alone = LabelledEmbeddings(faces.embeddings, np.arange(len(faces.people)))
    assert compare_rates(alone, alone, [1e-2]) == []
