"""What several faces of a person cost is measured where it can be, and bounded where it cannot."""

import numpy as np
import pytest

from sameface.model.decision.calibration import SingleComparisons
from sameface.model.measurement.face_counts import measure_fusions
from tests.model.strangers import draw_people


def test_a_single_face_is_one_comparison() -> None:
    assert SingleComparisons().of(1) == 1
    assert SingleComparisons((1.0, 2.0), (1.0, 1.5)).of(1) == 1


def test_beyond_what_was_measured_it_grows_like_the_faces() -> None:
    assert SingleComparisons().of(3) == 3
    assert SingleComparisons((1.0, 2.0), (1.0, 1.5)).of(4) == 3
    assert SingleComparisons((1.0, 2.0), (1.0, 1.5)).of(1.5) == 1.25


def test_the_best_of_several_faces_costs_more_than_their_mean() -> None:
    measured = measure_fusions(draw_people(300, 8, likeness=0.5))
    assert measured["max"].faces == measured["mean"].faces == (1, 2, 4, 8)
    assert 5 < measured["max"].of(8) <= 8
    for fusion in measured.values():
        assert np.all(np.diff(fusion.comparisons) >= 0)
    assert measured["mean"].of(8) < measured["max"].of(8)


@pytest.mark.parametrize(("people", "faces"), [(300, 1), (20, 8)])
def test_without_enough_people_of_several_faces_nothing_is_measured(people: int, faces: int) -> None:
    assert measure_fusions(draw_people(people, faces)) == {
        "max": SingleComparisons(),
        "mean": SingleComparisons(),
    }
