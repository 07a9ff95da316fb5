"""A calibration keeps the rate it was asked for, and says where its evidence ends."""

import itertools
import math

import numpy as np
import pytest

from sameface.model.decision.calibration import Curve
from sameface.model.errors import CalibrationRefused
from sameface.model.measurement.errors import LabelsRefused
from sameface.model.measurement.fit_calibration import fit_curve, measure_decades, need_more
from sameface.model.measurement.scores import count_scores, score_all_pairs
from tests.model.strangers import draw_people, true_fmr


def impostors(pairs: int, seed: int = 0):
    return count_scores(np.random.default_rng(seed).normal(0, 0.1, pairs).clip(-1, 1))


def test_the_true_rate_of_every_decade_lies_in_its_interval() -> None:
    """Of random directions the truth is known; a hundred sets of people, everybody with everybody."""
    inside = np.zeros(3, int)
    for seed in range(100):
        faces = draw_people(150, 2, seed=seed)
        decades = measure_decades(faces, fit_curve([score_all_pairs(faces)[1]]))
        assert len(decades) == 3  # 44,700 pairs support 6.7e-4
        inside += [rates.fmr.low <= true_fmr(rates.threshold) <= rates.fmr.high for rates in decades]
    assert inside.min() >= 90, inside


def test_thresholds_rise_as_rates_fall_also_beyond_the_data() -> None:
    curve = fit_curve([impostors(50_000)])
    rates = [10 ** (-exponent / 7) for exponent in range(1, 60)]
    thresholds = [curve.similarity_at(rate) for rate in rates]
    assert all(one < other for one, other in itertools.pairwise(thresholds))
    for rate, threshold in zip(rates, thresholds, strict=True):
        assert rate * 0.999 < curve.fmr_at(threshold) <= rate * (1 + 1e-9)


def test_a_rate_falls_without_end_but_never_to_zero() -> None:
    curve = fit_curve([impostors(10_000)])
    rates = [curve.fmr_at(similarity) for similarity in np.linspace(-1, 1, 401)]
    assert all(one >= other > 0 for one, other in itertools.pairwise(rates))
    assert rates[0] == 1


def test_what_is_supported_is_what_thirty_false_matches_are_expected_of() -> None:
    assert fit_curve([impostors(30_000)]).lowest_fmr == 30 / 30_000
    assert fit_curve([impostors(123_457)]).lowest_fmr == 30 / 123_457


def test_at_the_lowest_supported_rate_thirty_were_seen() -> None:
    scores = impostors(30_000)
    curve = fit_curve([scores])
    assert scores.count_from(curve.similarity_at(curve.lowest_fmr)) == 30


def test_beyond_the_data_the_tail_errs_on_the_side_of_caution() -> None:
    """Normal scores grow rare faster than an exponential tail: the true rate is lower."""
    for seed in range(10):
        curve = fit_curve([impostors(100_000, seed)])
        for rate in (1e-5, 1e-6, 1e-7):
            truth = 0.5 * math.erfc(curve.similarity_at(rate) / 0.1 / math.sqrt(2))
            assert truth <= rate


def test_an_exponential_tail_is_found_again() -> None:
    scores = count_scores(np.random.default_rng(0).exponential(0.05, 200_000).clip(0, 1))
    curve = fit_curve([scores])
    assert curve.tail_scale == pytest.approx(0.05, rel=0.15)
    assert math.exp(-curve.similarity_at(1e-6) / 0.05) == pytest.approx(1e-6, rel=0.9)


def test_of_several_groups_the_worst_one_decides() -> None:
    easy, hard = impostors(50_000), count_scores(np.random.default_rng(1).normal(0.2, 0.1, 20_000))
    both = fit_curve([easy, hard])
    assert both.lowest_fmr == 30 / 20_000
    for rate in (0.1, 0.01, 0.002):
        assert hard.share_from(both.similarity_at(rate)) <= rate
        assert both.similarity_at(rate) == pytest.approx(fit_curve([hard]).similarity_at(rate), abs=1e-3)


def test_equal_similarities_share_a_knot() -> None:
    scores = count_scores(np.repeat([0.0, 0.5, 0.6], [9000, 900, 100]))
    curve = fit_curve([scores])
    assert curve.similarities == (-1, 0.000001, 0.500001, 0.600001)
    for similarity, fmr in zip(curve.similarities, curve.fmrs, strict=True):
        assert scores.share_from(similarity) <= fmr


def test_too_few_impostors_carry_no_calibration() -> None:
    with pytest.raises(LabelsRefused, match="300 impostor pairs"):
        fit_curve([impostors(300)])


@pytest.mark.parametrize(
    ("similarities", "fmrs", "tail"),
    [
        ((0.0, 0.1), (0.1, 0.2), 0.1),
        ((0.1, 0.0), (0.2, 0.1), 0.1),
        ((0.0, 0.1), (0.2, 0.0), 0.1),
        ((0.0, 0.1), (0.2, 0.1, 0.05), 0.1),
        ((0.0, 0.1), (0.2, 0.1), 0.0),
        ((0.0,), (0.2,), 0.1),
    ],
)
def test_a_curve_that_does_not_fall_is_refused(similarities: tuple, fmrs: tuple, tail: float) -> None:
    with pytest.raises(CalibrationRefused):
        Curve(similarities, fmrs, tail)


def test_what_the_next_decade_needs() -> None:
    decade, pairs, people = need_more(30 / 499_500, 1000)
    assert decade == pytest.approx(1e-5)
    assert pairs == 3_000_000 - 499_500
    assert (1000 + people) * (999 + people) / 2 == pytest.approx(3_000_000, rel=0.01)
    assert need_more(30 / 300_000, 1000)[0] == pytest.approx(1e-5)  # 1e-4 is there
    assert need_more(30 / 299_000, 1000)[0] == pytest.approx(1e-4)  # and here it is not
