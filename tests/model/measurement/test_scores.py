"""Every pair is counted once, at its similarity, whatever the size of a tile."""

import itertools
import tracemalloc

import numpy as np
import pytest

from sameface.model.measurement import scores
from sameface.model.measurement.scores import LabelledEmbeddings, count_scores, score_all_pairs
from tests.model.strangers import draw_people


def naive(faces: LabelledEmbeddings) -> tuple[list[float], list[float]]:
    genuine, impostor = [], []
    for one, other in itertools.combinations(range(len(faces.people)), 2):
        similarity = round(float(faces.embeddings[one] @ faces.embeddings[other]), 6)
        (genuine if faces.people[one] == faces.people[other] else impostor).append(similarity)
    return genuine, impostor


@pytest.mark.parametrize("tile", [5, 7, 16, 2048])
def test_all_pairs_are_counted_once(tile: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scores, "TILE", tile)
    faces = draw_people(12, 3)
    for found, expected in zip(score_all_pairs(faces), naive(faces), strict=True):
        assert found.pairs == len(expected)
        for threshold in (-1, -0.2, 0, 0.1, 0.5, 1):
            close = sum(similarity >= threshold for similarity in expected)
            assert found.count_from(threshold) == pytest.approx(close, abs=1)


def test_the_order_of_the_faces_does_not_matter() -> None:
    faces = draw_people(30, 2)
    order = np.random.default_rng(1).permutation(len(faces.people))
    shuffled = LabelledEmbeddings(faces.embeddings[order], faces.people[order])
    for one, other in zip(score_all_pairs(faces), score_all_pairs(shuffled), strict=True):
        # The last bit of a product may depend on the order, and with it the sixth digit.
        assert [one.count_from(s / 50) for s in range(-49, 50)] == pytest.approx(
            [other.count_from(s / 50) for s in range(-49, 50)], abs=1
        )


def test_a_threshold_lets_no_larger_share_pass() -> None:
    found = count_scores(np.array([0.1, 0.2, 0.2, 0.3, 0.4]))
    assert [found.find_threshold(share) for share in (1, 0.8, 0.6, 0.4, 0.2, 0)] == [
        -1,
        0.100001,
        0.200001,
        0.200001,
        0.300001,
        0.400001,
    ]
    assert [found.count_from(threshold) for threshold in (0.2, 0.200001, 0.4, 0.400001, 1)] == [4, 2, 1, 0, 0]
    assert (found.share_from(0.3), found.share_below(0.3)) == (0.4, 0.6)


def test_when_all_are_equal_to_one_no_threshold_is_strict_enough() -> None:
    assert count_scores(np.ones(5)).find_threshold(0.1) == 1


def test_similarities_beyond_one_by_rounding_are_counted_as_one() -> None:
    assert count_scores(np.array([1.0000001, -1.0000001])).count_from(1) == 1


def test_the_mean_excess_is_measured_from_the_threshold() -> None:
    assert count_scores(np.array([0.1, 0.4, 0.6])).mean_excess(0.3) == pytest.approx(0.2)
    assert count_scores(np.array([0.1])).mean_excess(0.3) == 0


def test_memory_stays_flat_however_many_pairs_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scores, "TILE", 256)

    def peak(people: int) -> int:
        faces = draw_people(people, 2)
        tracemalloc.start()
        score_all_pairs(faces)
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    assert peak(1200) < 1.1 * peak(300)
