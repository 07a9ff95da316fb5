"""Where the time goes: stages are added up, also those of others."""

import pytest

from sameface.model.observer import Stopwatch


def test_stages_come_in_the_order_they_ran_with_the_total_last() -> None:
    stopwatch = Stopwatch()
    for name in ("decode", "detect", "decode", "align"):
        with stopwatch.stage(name):
            pass
    assert list(stopwatch.milliseconds()) == ["decode", "detect", "align", "total"]


def test_a_stage_that_runs_twice_is_added_up() -> None:
    stopwatch = Stopwatch()
    stopwatch.seconds = {"embed": 5.0}
    with stopwatch.stage("embed"):
        pass
    assert stopwatch.milliseconds()["embed"] >= 5000


def test_a_stage_that_fails_is_counted_too() -> None:
    stopwatch = Stopwatch()
    with pytest.raises(ValueError, match="broken"), stopwatch.stage("decode"):
        raise ValueError("broken")
    assert "decode" in stopwatch.milliseconds()


def test_the_work_of_others_is_included_and_the_total_is_wall_time() -> None:
    """Two photos of two seconds each, worked on at the same time, do not make the total four seconds."""
    both, probe, reference = Stopwatch(), Stopwatch(), Stopwatch()
    probe.seconds, reference.seconds = {"embed": 2.0}, {"embed": 2.0, "align": 0.5}
    spent = both.milliseconds(probe, reference)
    assert (spent["embed"], spent["align"]) == (4000, 500)
    assert spent["total"] < 2000
