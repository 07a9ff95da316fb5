"""Of probes that are enrolled and probes that are not, how many are told right."""

import numpy as np
import pytest

from sameface.model.measurement.scores import LabelledEmbeddings
from sameface.training.evaluation.open_set import measure_identification, measure_probes
from tests.model.strangers import draw_people


def test_two_of_three_people_are_enrolled_by_their_first_face() -> None:
    found = measure_identification(draw_people(300, 3))
    assert (found.enrolled, found.mated, found.unmated) == (200, 400, 300)
    assert found.first.value > 0.99


def test_rates_are_those_of_a_naive_count() -> None:
    faces = draw_people(150, 2, likeness=0.4)
    found = measure_identification(faces)
    *seen, beyond = found.rows
    for row in seen:
        assert row.fpir.value <= row.target_fpir
        assert row.fnir.low <= row.fnir.value <= row.fnir.high
    assert [row.fnir.value for row in seen] == sorted(row.fnir.value for row in seen)
    assert (beyond.threshold, beyond.fpir, beyond.fnir) == (None, None, None)  # 0.1 of 100 strangers
    assert [row.supported for row in found.rows] == [False, False, False]
    assert 1 - found.first.value <= found.rows[0].fnir.value


def test_single_faces_are_strangers() -> None:
    several, single = draw_people(30, 2), draw_people(40, 1, seed=1)
    both = LabelledEmbeddings(
        np.concatenate([several.embeddings, single.embeddings]),
        np.concatenate([several.people, single.people + 30]),
    )
    found = measure_identification(both)
    assert (found.enrolled, found.mated, found.unmated) == (20, 20, 60)


@pytest.mark.parametrize(("people", "faces"), [(20, 1), (1, 5)])
def test_without_people_to_enrol_or_strangers_there_is_nothing_to_measure(people: int, faces: int) -> None:
    assert measure_identification(draw_people(people, faces)) is None


def test_probes_of_one_person_are_drawn_together() -> None:
    marked = np.repeat([True, False], [50, 50])
    few, many = measure_probes(marked, np.repeat(np.arange(4), 25)), measure_probes(marked, np.arange(100))
    assert few.value == many.value == 0.5
    assert few.high - few.low > 2 * (many.high - many.low)
