"""What a recipe may ask of a head, what it is warned of, and what a head keeps from step to step."""

import logging
import math
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from sameface.training.errors import RecipeRefused
from sameface.training.losses.by_name import HEADS, build_head
from sameface.training.losses.cosface import bound_margin
from sameface.training.losses.margin_head import bound_scale


def test_annealing_follows_the_schedule() -> None:
    head = build_head("sphereface", 4, 3, base=1000, gamma=0.12, power=1, lambda_min=5)
    expected = [
        (0, 1000.0),
        (1, 1000 / 1.12),
        (10, 1000 / 2.2),
        (1650, 1000 / 199),
        (1659, 5.0),
        (10**6, 5.0),
    ]
    for step, value in expected:
        head.step.fill_(step)
        assert float(head.anneal()) == pytest.approx(value, rel=1e-3 if step == 1659 else 1e-6)
    steep = build_head("sphereface", 4, 3, base=10, gamma=1.0, power=2.0, lambda_min=0)
    steep.step.fill_(4)
    assert float(steep.anneal()) == pytest.approx(10 / 25)


def test_adaface_averages_the_norms_while_it_trains() -> None:
    head = build_head("adaface", 2, 3, update_rate=0.1).train()
    labels = torch.tensor([0, 1])
    head(torch.tensor([[3.0, 4.0], [0.0, 1.0]]), labels)  # norms 5 and 1
    assert float(head.norm_mean) == pytest.approx(0.9 * 20 + 0.1 * 3)
    assert float(head.norm_deviation) == pytest.approx(0.9 * 100 + 0.1 * 2)
    head.eval()(torch.tensor([[30.0, 40.0], [0.0, 1.0]]), labels)
    assert float(head.norm_mean) == pytest.approx(0.9 * 20 + 0.1 * 3)
    assert head.train()(torch.ones(1, 2), labels[:1]).isfinite().all()


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


def test_an_unknown_head_is_refused_with_the_known_ones() -> None:
    with pytest.raises(RecipeRefused) as refusal:
        build_head("curricularface", 4, 3)
    assert refusal.value.code == "recipe_refused"
    assert all(name in refusal.value.detail for name in HEADS)


def test_an_unknown_option_is_refused_with_the_known_ones() -> None:
    with pytest.raises(RecipeRefused, match="no option m; known are margin, scale, probability"):
        build_head("cosface", 4, 3, m=0.3)
    with pytest.raises(RecipeRefused, match="no option margin; it has none"):
        build_head("modified_softmax", 4, 3, margin=0.3)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("sphereface", {"margin": 5}),
        ("sphereface", {"margin": 1.5}),
        ("l_softmax", {"margin": 0}),
        ("sphereface", {"lambda_min": -1.0}),
        ("sphereface_r", {"margin": 0.9}),
        ("cosface", {"margin": -0.1}),
        ("cosface", {"margin": math.nan}),
        ("cosface", {"margin": "large"}),
        ("cosface", {"scale": 0.0}),
        ("cosface", {"probability": 1.0}),
        ("arcface", {"margin": 2.0}),
        ("adaface", {"update_rate": 1.5}),
    ],
)
def test_a_value_that_cannot_work_is_refused(name: str, options: dict[str, Any]) -> None:
    with pytest.raises(RecipeRefused):
        build_head(name, 4, 3, **options)


def test_one_class_is_refused() -> None:
    with pytest.raises(RecipeRefused, match="two classes"):
        build_head("softmax", 4, 1)


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
