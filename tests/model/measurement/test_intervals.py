"""Intervals hold what they promise, also where pairs share people."""

import numpy as np
import pytest

from sameface.model.measurement import intervals, scores
from sameface.model.measurement.intervals import draw_people as draw_weights
from sameface.model.measurement.intervals import measure_rates, summarize
from sameface.model.measurement.scores import LabelledEmbeddings, score_all_pairs
from tests.model.strangers import draw_people, true_fmr


def test_rates_are_those_of_the_counts() -> None:
    faces = draw_people(40, 3)
    genuine, impostor = score_all_pairs(faces)
    for rates in measure_rates(faces, [0.0, 0.2, 0.6]):
        assert rates.fmr.value == impostor.share_from(rates.threshold)
        assert rates.fnmr.value == pytest.approx(genuine.share_below(rates.threshold))
        assert rates.fmr.low <= rates.fmr.value <= rates.fmr.high


def test_the_draws_are_those_of_a_naive_bootstrap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scores, "TILE", 5)
    monkeypatch.setattr(intervals, "DRAWS", 7)
    faces = draw_people(8, 2, seed=3)
    [rates] = measure_rates(faces, [0.1])
    drawn = []
    for weights in draw_weights(8):
        errors = cases = 0.0
        for one in range(16):
            for other in range(one + 1, 16):
                if (
                    faces.people[one] != faces.people[other]
                ):  # drawn twice, a person has no impostor in itself
                    weight = weights[faces.people[one]] * weights[faces.people[other]]
                    cases += weight
                    errors += weight * (
                        round(float(faces.embeddings[one] @ faces.embeddings[other]), 6) >= 0.1
                    )
        drawn.append(errors / cases)
    assert (rates.fmr.low, rates.fmr.high) == pytest.approx(tuple(np.percentile(drawn, [2.5, 97.5])))


def test_where_no_error_was_seen_three_may_have_been_missed() -> None:
    assert summarize(0, 1000, np.zeros(5)).high == 3 / 1000
    assert summarize(0, 2, np.zeros(5)).high == 1
    assert (summarize(0, 0, np.zeros(5)).low, summarize(0, 0, np.zeros(5)).high) == (0, 1)


def test_where_nothing_but_errors_was_seen_three_may_have_been_none() -> None:
    rate = summarize(1500, 1500, np.ones(10))
    assert (rate.value, rate.low, rate.high) == (1, pytest.approx(0.998), 1)


def test_shared_people_widen_the_interval() -> None:
    """As many pairs of fewer people say less."""

    def width(faces: LabelledEmbeddings) -> float:
        [rates] = measure_rates(faces, [0.2])
        return rates.fmr.high - rates.fmr.low

    many, few = draw_people(240, 1), draw_people(30, 8, likeness=0.95)
    assert width(few) > 2 * width(many)


def test_the_true_rate_lies_in_nineteen_of_twenty_intervals() -> None:
    threshold = 0.3
    inside = 0
    for seed in range(100):
        [rates] = measure_rates(draw_people(60, 2, seed=seed), [threshold])
        inside += rates.fmr.low <= true_fmr(threshold) <= rates.fmr.high
    assert inside >= 90
