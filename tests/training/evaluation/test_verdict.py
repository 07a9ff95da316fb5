"""A report concludes: the calibration holds here, does not, or these photos cannot say."""

import hashlib
import re
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from sameface.model.decision.calibration import Calibration, Rate
from sameface.model.measurement.scores import LabelledEmbeddings, score_all_pairs
from sameface.training.evaluation.verdict import Answer, CalibratedRates, decide, judge_calibration
from tests.docs.pages import read_page
from tests.model.calibrated import LOWEST, draw_faces, measure
from tests.model.strangers import draw_people
from tests.networks import build_recogniser

DIGESTS = [hashlib.sha256(str(number).encode()).hexdigest() for number in range(400)]


def test_the_page_of_evaluation_explains_every_verdict() -> None:
    shown = re.findall(r"^- `(\w+)`: ", read_page("docs/evaluation.md"), re.MULTILINE)
    assert shown == list(get_args(Answer))


@pytest.fixture
def calibration(tmp_path: Path) -> Calibration:
    """Made on 200 people with two faces; their photos are DIGESTS."""
    faces = draw_faces()
    faces.digests.update(zip(faces.files, DIGESTS, strict=True))
    return measure(build_recogniser(tmp_path), faces=faces)


def judge(
    calibration: Calibration, pairs: LabelledEmbeddings, target: float, digests: list[str] | None = None
) -> CalibratedRates:
    return judge_calibration(calibration, target, pairs, score_all_pairs(pairs)[1], digests or [])


@pytest.mark.parametrize(
    ("rate", "target", "pairs", "overlap", "verdict"),
    [
        (Rate(1e-3, 8e-4, 1.3e-3), 1e-3, 100_000, 0.0, "holds"),
        (Rate(1e-3, 8e-4, 1.3e-3), 1e-3, 100_000, None, "holds"),
        (Rate(5e-4, 3e-4, 8e-4), 1e-3, 100_000, 0.05, "holds"),
        (Rate(0, 0, 3 / 10_000), 1e-3, 10_000, None, "holds"),  # the rule of three
        (Rate(0, 0, 3 / 2_000), 1e-3, 2_000, None, "cannot_say"),
        (Rate(1e-3, 1e-4, 1.9e-3), 1e-3, 2_000, None, "cannot_say"),  # two false matches
        (Rate(1e-3, 2e-4, 4e-3), 1e-3, 100_000, None, "cannot_say"),  # of few people
        (Rate(3e-3, 2e-3, 4e-3), 1e-3, 100_000, None, "does_not_hold"),
        (Rate(3e-3, 2e-3, 4e-3), 1e-3, 100_000, 1.0, "does_not_hold"),
        (Rate(1e-3, 8e-4, 1.3e-3), 1e-3, 100_000, 0.5, "cannot_say"),  # on its own photos
    ],
)
def test_the_interval_decides(
    rate: Rate, target: float, pairs: int, overlap: float | None, verdict: str
) -> None:
    assert decide(rate, target, pairs, overlap) == verdict


def test_a_calibration_holds_for_other_people_of_its_kind(calibration: Calibration) -> None:
    found = judge(calibration, draw_people(400, 2, seed=7), 1e-2)
    assert (found.verdict, found.confidence, found.supported, found.extrapolated) == (
        "holds",
        0.95,
        True,
        False,
    )
    assert found.rates.fmr.low < 1e-2 < found.rates.fmr.high
    assert found.sentence.startswith("tiny-recogniser/drawn holds here: at the threshold for FMR 1e-2, ")
    assert "95 % interval" in found.sentence
    assert f"{found.rates.fnmr.value:.2%} of the genuine pairs do not match." in found.sentence


def test_it_does_not_hold_where_strangers_look_more_alike(calibration: Calibration) -> None:
    strict = replace(calibration.curve, similarities=tuple(s - 0.1 for s in calibration.curve.similarities))
    found = judge(replace(calibration, curve=strict), draw_people(400, 2, seed=7), 1e-2)
    assert found.verdict == "does_not_hold"
    times = found.rates.fmr.low / 1e-2
    assert f"at least {times:.2g} times what was asked for. Calibrate on photos like these." in found.sentence


def test_too_few_pairs_cannot_say_and_tell_how_many_could(calibration: Calibration) -> None:
    found = judge(calibration, draw_people(20, 2, seed=7), 1e-3)
    assert (found.verdict, found.supported) == ("cannot_say", False)
    for part in (
        "760 impostor pairs let 0.76 false matches",
        "Take 30,000 impostor pairs",
        "--target-fmr 4e-2",
    ):
        assert part in found.sentence


def test_without_a_false_match_the_rule_of_three_bounds_the_rate(calibration: Calibration) -> None:
    mild = replace(calibration.curve, similarities=tuple(s + 0.5 for s in calibration.curve.similarities))
    found = judge(replace(calibration, curve=mild), draw_people(100, 2, seed=7), 1e-2)
    assert found.verdict == "holds"
    assert "none of 19,800 impostor pairs matches, so the rate is below 1.5e-4 with 95 %" in found.sentence
    assert "stricter here than was asked for" in found.sentence


def test_a_calibration_is_not_judged_by_the_photos_that_it_was_made_on(calibration: Calibration) -> None:
    own = judge(calibration, draw_faces().embedded, 1e-2, DIGESTS)
    assert (own.verdict, own.overlap) == ("cannot_say", 1)
    assert own.sentence.endswith("it was made on them.")
    assert own.warning.startswith("tiny-recogniser/drawn was made on all of these very photos")
    some = judge(
        calibration, draw_people(400, 2, seed=7), 1e-2, [*DIGESTS[:40], *(f"{n:064x}" for n in range(760))]
    )
    assert (some.verdict, some.overlap) == ("holds", pytest.approx(0.05))
    assert "made on 5 % of these" in some.warning
    other = judge(calibration, draw_people(400, 2, seed=7), 1e-2, [f"{n:064x}" for n in range(800)])
    assert (other.verdict, other.overlap, other.warning) == ("holds", 0, None)


def test_a_threshold_beyond_the_calibrations_own_data_is_marked(calibration: Calibration) -> None:
    found = judge(calibration, draw_people(100, 2, seed=7), LOWEST / 10)
    assert found.extrapolated
    assert "The threshold is extrapolated: its own data supports rates from 3.8e-4 up." in found.sentence
