"""Heads with a scale: its usual value, its bound, and the warm-up of the margin."""

import math

import pytest

pytest.importorskip("torch")

import torch

from sameface.training.losses.by_name import build_head
from sameface.training.losses.margin_head import bound_scale


@pytest.mark.parametrize("name", ["cosface", "arcface", "adaface", "sphereface_r"])
@pytest.mark.parametrize(("classes", "scale"), [(2, 30), (9_999, 30), (10_000, 64), (100_000, 64)])
def test_usual_scale_grows_with_the_classes_and_needs_no_warning(
    name: str, classes: int, scale: float, caplog: pytest.LogCaptureFixture
) -> None:
    assert build_head(name, 2 if classes == 2 else 4, classes).scale == scale
    assert not caplog.records


def test_scale_bound_is_the_papers() -> None:
    """At the bound, a center of a regular simplex has exactly the probability."""
    for classes in (2, 5, 1000):
        scale = bound_scale(classes, 0.9)
        own, other = math.exp(scale), math.exp(-scale / (classes - 1))
        assert own / (own + (classes - 1) * other) == pytest.approx(0.9)


def test_a_scale_below_the_bound_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    build_head("cosface", 128, 1000, scale=9.0)
    assert "scale 9 is below 9.09: not all 1000" in caplog.text
    caplog.clear()
    build_head("cosface", 128, 1000, scale=9.2)
    build_head("cosface", 128, 1000, scale=8.0, probability=0.7)
    assert not caplog.records


@pytest.mark.parametrize(
    ("name", "least"), [("cosface", 0.0), ("arcface", 0.0), ("adaface", 0.0), ("sphereface_r", 1.0)]
)
def test_a_margin_warms_up_over_the_passes_of_training_and_goes_on_when_resumed(
    name: str, least: float
) -> None:
    head, full = build_head(name, 4, 8, warm_up=4), build_head(name, 4, 8).margin
    embeddings, labels = torch.randn(2, 4), torch.tensor([0, 5])

    def pass_once(head: torch.nn.Module) -> float:
        head(embeddings, labels)
        return head.margin

    first = [pass_once(head) for _ in range(2)]
    resumed = build_head(name, 4, 8, warm_up=4)
    resumed.load_state_dict(head.state_dict())
    rest = [pass_once(resumed) for _ in range(3)]
    expected = [least + share * (full - least) for share in (0.25, 0.5, 0.75, 1, 1)]
    assert first + rest == pytest.approx(expected)
    assert pass_once(head.eval()) == pytest.approx(expected[1])  # looking is no training
