"""A similarity as other servers' clients read it: its meaning is an error rate."""

from pathlib import Path

import pytest

from sameface.model.bundles.bundle import load_bundle
from sameface.model.decision.calibration_files import Calibrations
from sameface.model.decision.confidence import measure_confidence, to_confidence, to_rarity
from sameface.model.decision.thresholds import EXTRAPOLATING, Threshold, Thresholds
from tests.model.calibrated import calibrate_bundle
from tests.networks import build_recogniser

FAMILIES = {"compreface": 0.5, "deepstack": 0.67, "rekognition": 0.8}


@pytest.fixture(scope="module")
def thresholds(tmp_path_factory: pytest.TempPathFactory) -> list[Threshold]:
    """For a pair, and for galleries of two sizes."""
    folder = tmp_path_factory.mktemp("calibrated")
    calibrate_bundle(build_recogniser(folder))
    found = Thresholds(Calibrations(load_bundle(folder)), target_fmr=1e-3, target_fpir=0.05)
    galleries = [
        found.for_gallery(EXTRAPOLATING, people=people, faces=2 * people, fusion="max")
        for people in (1, 10_000)
    ]
    return [found.for_pair(EXTRAPOLATING), *galleries]


@pytest.mark.parametrize("at_target", FAMILIES.values(), ids=FAMILIES)
def test_it_passes_the_familys_border_where_the_threshold_is(
    thresholds: list[Threshold], at_target: float
) -> None:
    for threshold in thresholds:
        assert measure_confidence(threshold, threshold.value, at_target) >= at_target
        assert measure_confidence(threshold, threshold.value - 2e-6, at_target) < at_target
        assert measure_confidence(threshold, threshold.value, at_target) == pytest.approx(at_target, abs=1e-3)


@pytest.mark.parametrize("at_target", FAMILIES.values(), ids=FAMILIES)
def test_it_is_99_percent_at_a_hundredth_of_the_target(thresholds: list[Threshold], at_target: float) -> None:
    assert to_confidence(1, at_target) == pytest.approx(at_target)
    assert to_confidence(100, at_target) == pytest.approx(0.99)
    threshold = thresholds[0]
    similarity = threshold.calibration.curve.similarity_at(threshold.target / 100)
    assert measure_confidence(threshold, similarity, at_target) == pytest.approx(0.99, abs=1e-4)


@pytest.mark.parametrize("at_target", FAMILIES.values(), ids=FAMILIES)
def test_it_rises_with_similarity_from_0_to_1(thresholds: list[Threshold], at_target: float) -> None:
    for threshold in (*thresholds, Threshold(0.4)):
        found = [measure_confidence(threshold, step / 200, at_target) for step in range(-200, 201)]
        assert found == sorted(found)
        assert 0 <= found[0] < at_target < found[-1] <= 1


@pytest.mark.parametrize("confidence", [0.05, 0.5, 0.6, 0.99])
def test_rarity_is_the_inverse(confidence: float) -> None:
    assert to_confidence(to_rarity(confidence, 0.5), 0.5) == pytest.approx(confidence)


def test_without_a_calibration_the_threshold_is_still_the_border() -> None:
    published = Threshold(0.363)
    assert measure_confidence(published, 0.363, 0.5) == 0.5
    assert measure_confidence(published, 1.0, 0.5) == 1
    assert measure_confidence(published, -1.0, 0.5) == 0


def test_the_table_of_the_docs_is_what_is_computed() -> None:
    page = Path(__file__).parents[3] / "docs" / "compatible.md"
    rows = [
        line.strip("| ").split(" | ")
        for line in page.read_text("utf-8").splitlines()
        if "of the target" in line
    ]
    assert len(rows) == 8
    for written in rows:
        confidence, rarer = float(written[0]), to_rarity(float(written[0]), 0.5)
        assert written[1] == f"{1 / rarer:.2g} of the target"
        assert written[2] == f"{1e-4 / rarer:.1e}"
        assert written[3] == f"{100 * to_confidence(rarer, 0.8):.1f}"
        assert 0 < confidence < 1
