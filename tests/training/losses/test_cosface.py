"""CosFace: the bound of its margin, and what is said where a recipe is above it."""

import logging
import math

import pytest

pytest.importorskip("torch")

from sameface.training.losses.by_name import build_head
from sameface.training.losses.cosface import bound_margin


@pytest.mark.parametrize(
    ("classes", "dimension", "bound"),
    [
        (8, 2, 1 - math.cos(math.pi / 4)),
        (3, 2, 1.5),
        (3, 128, 1.5),
        (129, 128, 129 / 128),
        (130, 128, 1.0),
        (100_000, 4, 1.0),
    ],
)
def test_a_margin_above_the_bound_is_warned_of(
    classes: int, dimension: int, bound: float, caplog: pytest.LogCaptureFixture
) -> None:
    assert bound_margin(classes, dimension) == pytest.approx(bound)
    build_head("cosface", dimension, classes, margin=bound - 0.001)
    assert not caplog.records
    build_head("cosface", dimension, classes, margin=bound + 0.001)
    assert f"is above {bound:.4f}: {classes} people in {dimension} dimensions cannot" in caplog.text
    assert "0.35 is usual" in caplog.text


def test_two_opposite_classes_keep_the_largest_margin_of_all(caplog: pytest.LogCaptureFixture) -> None:
    assert bound_margin(2, 1) == 2
    build_head("cosface", 1, 2, margin=2.0)
    assert not caplog.records


def test_a_usual_recipe_starts_without_a_word_about_its_margin(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "sameface.training"):
        build_head("cosface", 128, 1474)
    assert not caplog.records
