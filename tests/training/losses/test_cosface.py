"""CosFace: the bound of its margin, and what is said where a recipe is above it."""

import logging
import math

import pytest

pytest.importorskip("torch")

from sameface.training.losses.by_name import build_head
from sameface.training.losses.cosface import bound_margin


@pytest.mark.parametrize(
    ("classes", "dimension", "bound"),
    [(8, 2, 1 - math.cos(math.pi / 4)), (3, 2, 1.5), (2, 1, 2.0), (3, 128, 1.5), (129, 128, 129 / 128)],
)
def test_a_margin_above_the_bound_is_warned_of(
    classes: int, dimension: int, bound: float, caplog: pytest.LogCaptureFixture
) -> None:
    assert bound_margin(classes, dimension) == pytest.approx(bound)
    build_head("cosface", dimension, classes, margin=bound - 0.001)
    assert not caplog.records
    build_head("cosface", dimension, classes, margin=bound + 0.001)
    assert "cannot keep it" in caplog.text


def test_where_no_formula_bounds_the_margin_nothing_is_warned_of_and_that_is_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert bound_margin(130, 128) is None
    with caplog.at_level(logging.INFO, "sameface.training"):
        build_head("cosface", 128, 130, margin=0.9)
    assert [record.levelname for record in caplog.records] == ["INFO"]
    assert "no formula bounds it" in caplog.text
