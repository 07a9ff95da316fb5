"""Which threshold is taken, and when there is none."""

import math
from pathlib import Path

import pytest

from sameface.model.bundles.bundle import Bundle, load_bundle
from sameface.model.decision.calibration_files import Calibrations
from sameface.model.decision.thresholds import Rule, Thresholds, add_up, share_out
from sameface.model.errors import (
    CalibrationNotFound,
    FmrNotSupported,
    FpirNotSupported,
    InvalidRule,
    NotCalibrated,
)
from tests.model.calibrated import LOWEST, calibrate_bundle
from tests.networks import build_recogniser


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return build_recogniser(tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module")
def plain(bundle: Bundle) -> Thresholds:
    return Thresholds(Calibrations(bundle))


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory: pytest.TempPathFactory) -> Thresholds:
    folder = tmp_path_factory.mktemp("calibrated")
    calibrate_bundle(build_recogniser(folder))
    return Thresholds(Calibrations(load_bundle(folder)), target_fmr=1e-3, target_fpir=0.05)


def in_gallery(thresholds: Thresholds, people: int, rate: float | None = None, **others):
    options = {"faces": people, "fusion": "max"} | others
    rule = Rule(rate=rate, extrapolate=options.pop("extrapolate", True))
    return thresholds.for_gallery(rule, people=people, **options)


@pytest.mark.parametrize("value", [0.7, 0.0, -1.0])
def test_the_callers_threshold_comes_first(plain: Thresholds, calibrated: Thresholds, value: float) -> None:
    assert plain.for_pair(Rule(threshold=value)).value == value
    chosen = calibrated.for_pair(Rule(threshold=value))
    assert (chosen.value, chosen.target, chosen.extrapolated) == (value, None, False)
    assert chosen.judge(0.3).estimated_fmr == pytest.approx(calibrated.calibrations.default.curve.fmr_at(0.3))


def test_without_a_calibration_the_published_threshold_decides_and_a_rate_is_refused(
    plain: Thresholds,
) -> None:
    chosen = plain.for_pair(Rule())
    assert (chosen.value, chosen.target, chosen.calibration_name) == (0.5, None, None)
    assert chosen.judge(0.9).estimated_fmr is None
    with pytest.raises(NotCalibrated, match="tiny-recogniser has no calibration"):
        plain.for_pair(Rule(rate=1e-3))
    with pytest.raises(NotCalibrated):
        in_gallery(plain, 10, 0.1)


def test_without_any_threshold_one_is_asked_for(tmp_path: Path) -> None:
    bundle = build_recogniser(tmp_path, threshold=None)
    with pytest.raises(NotCalibrated, match="neither a calibration nor a published threshold"):
        Thresholds(Calibrations(bundle)).for_pair(Rule())


def test_a_rate_gives_the_threshold_that_keeps_it(calibrated: Thresholds) -> None:
    curve = calibrated.calibrations.default.curve
    for rate in (0.1, 0.01, 0.001):
        chosen = calibrated.for_pair(Rule(rate=rate))
        assert (chosen.value, chosen.target) == (curve.similarity_at(rate), rate)
        assert chosen.calibration_name == "tiny-recogniser/drawn"
        assert not chosen.extrapolated
    assert calibrated.for_pair(Rule()).target == 1e-3


def test_a_rate_is_refused_exactly_below_what_the_data_supports(calibrated: Thresholds) -> None:
    assert not calibrated.for_pair(Rule(rate=LOWEST)).extrapolated
    with pytest.raises(FmrNotSupported) as refused:
        calibrated.for_pair(Rule(rate=LOWEST * 0.999))
    assert refused.value.facts["lowest_supported"] == pytest.approx(LOWEST)
    allowed = calibrated.for_pair(Rule(rate=LOWEST * 0.999, extrapolate=True))
    assert allowed.extrapolated
    assert allowed.judge(-1).extrapolated


def test_an_estimate_is_never_lower_than_the_data_supports_unless_allowed(calibrated: Thresholds) -> None:
    careful = calibrated.for_pair(Rule(rate=0.01))
    assert careful.judge(0.99).estimated_fmr == pytest.approx(LOWEST)
    assert not careful.judge(0.99).extrapolated
    assert careful.judge(0.99).estimated_fmr_is_bound
    assert not careful.judge(0.1).estimated_fmr_is_bound
    bold = calibrated.for_pair(Rule(rate=0.01, extrapolate=True))
    assert 0 < bold.judge(0.99).estimated_fmr < LOWEST
    assert bold.judge(0.99).extrapolated
    assert not bold.judge(0.99).estimated_fmr_is_bound
    assert not bold.judge(0.1).extrapolated


def test_a_person_of_several_faces_needs_a_higher_threshold(calibrated: Thresholds) -> None:
    one, four = (calibrated.for_pair(Rule(rate=0.01), faces=faces) for faces in (1, 4))
    assert four.value > one.value
    assert four.judge(four.value).estimated_fmr == pytest.approx(0.01, rel=0.01)


def test_the_threshold_rises_with_the_gallery_and_the_rate_stays(calibrated: Thresholds) -> None:
    curve = calibrated.calibrations.default.curve
    chosen = [in_gallery(calibrated, people, 0.1) for people in (1, 10, 100, 1000, 100_000)]
    values = [threshold.value for threshold in chosen]
    assert values == sorted(set(values))
    for people, threshold in zip((1, 10, 100), chosen, strict=False):
        assert add_up(curve.fmr_at(threshold.value), people) == pytest.approx(0.1, rel=0.01)
    assert [threshold.extrapolated for threshold in chosen] == [False, False, False, True, True]


def test_the_fusion_and_the_faces_of_people_count(calibrated: Thresholds) -> None:
    single = in_gallery(calibrated, 50)
    best, mean = (in_gallery(calibrated, 50, faces=100, fusion=fusion) for fusion in ("max", "mean"))
    assert single.value <= mean.value <= best.value
    assert single.value < best.value
    assert in_gallery(calibrated, 0, faces=0).value == in_gallery(calibrated, 1).value


def test_a_rate_of_a_gallery_is_refused_where_its_size_is_not_supported(calibrated: Thresholds) -> None:
    in_gallery(calibrated, 100, 0.05, extrapolate=False)
    with pytest.raises(FpirNotSupported) as refused:
        in_gallery(calibrated, 1000, 0.05, extrapolate=False)
    lowest = refused.value.facts["lowest_supported"]
    assert lowest == pytest.approx(1 - (1 - LOWEST) ** 1000)
    in_gallery(calibrated, 1000, lowest * 1.001, extrapolate=False)


def test_a_calibration_can_be_named(calibrated: Thresholds) -> None:
    assert calibrated.for_pair(Rule(rate=0.01), calibration="drawn").calibration_name
    with pytest.raises(CalibrationNotFound):
        calibrated.for_pair(Rule(rate=0.01), calibration="gone")


def test_rates_add_up_and_are_shared_out() -> None:
    assert add_up(0.01, 1) == pytest.approx(0.01)
    assert add_up(0.5, 2) == pytest.approx(0.75)
    assert add_up(1.0, 5) == pytest.approx(1)
    assert share_out(add_up(1e-9, 1e6), 1e6) == pytest.approx(1e-9)


@pytest.mark.parametrize("rate", [0.0, 1.0, -0.1, 2.0, math.nan, math.inf])
def test_a_rate_must_be_one(rate: float) -> None:
    with pytest.raises(InvalidRule, match="between 1e-12 and 1"):
        Rule(rate=rate)


@pytest.mark.parametrize("threshold", [-1.1, 1.1, math.nan])
def test_a_threshold_must_be_a_similarity(threshold: float) -> None:
    with pytest.raises(InvalidRule, match="from -1 to 1"):
        Rule(threshold=threshold)


def test_two_rules_are_one_too_many() -> None:
    with pytest.raises(InvalidRule, match="not both"):
        Rule(threshold=0.4, rate=0.1)
