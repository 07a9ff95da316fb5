"""What a recipe may ask of a head or a pair loss, and what is refused with which words."""

import math
import re
from inspect import signature
from typing import Any

import pytest

pytest.importorskip("torch")

from sameface.training.errors import RecipeRefused
from sameface.training.losses.by_name import HEADS, PAIR_LOSSES, build_head, build_pair_loss
from tests.docs.pages import read_page, table_rows


def test_an_unknown_head_is_refused_with_the_known_ones() -> None:
    with pytest.raises(RecipeRefused) as refusal:
        build_head("curricularface", 4, 3)
    assert refusal.value.code == "recipe_refused"
    assert all(name in refusal.value.detail for name in HEADS)


def test_an_unknown_option_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        RecipeRefused, match=r"loss\.head_options of cosface: no option m; known are margin, scale"
    ):
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
        ("cosface", {"margin": True}),
        ("cosface", {"margin": 2.5}),
        ("arcface", {"margin": 2.0}),
        ("adaface", {"margin": 1.1}),
        ("adaface", {"update_rate": 1.5}),
    ],
)
def test_a_value_that_cannot_work_is_refused(name: str, options: dict[str, Any]) -> None:
    with pytest.raises(RecipeRefused):
        build_head(name, 4, 3, **options)


@pytest.mark.parametrize(
    ("name", "margin", "why"),
    [
        ("cosface", 2.5, "margin is at most 2, since cosines lie in .* it is 2.5, and 0.35 is usual"),
        ("arcface", 2.5, r"margin is an angle of at most pi / 2 \(1.5708\).* it is 2.5, and 0.5 is usual"),
        ("adaface", 1.5, "margin is at most 1: .* it is 1.5, and 0.4 is usual"),
        ("sphereface", 2.5, "margin is 1, 2, 3 or 4, not 2.5"),
        ("cosface", "large", "loss.head_options.margin is a number, not 'large'"),
    ],
)
def test_a_margin_that_makes_no_sense_is_refused_with_its_bound_and_why(
    name: str, margin: Any, why: str
) -> None:
    with pytest.raises(RecipeRefused, match=why):
        build_head(name, 128, 1000, margin=margin)


@pytest.mark.parametrize(("name", "largest"), [("contrastive", 2), ("triplet", 4)])
def test_a_pair_loss_asks_for_no_more_than_the_largest_distance(name: str, largest: float) -> None:
    assert build_pair_loss(name, margin=largest).margin == largest
    for margin in (largest + 0.01, math.nan, math.inf):
        with pytest.raises(RecipeRefused, match=f"at most {largest}, the largest distance"):
            build_pair_loss(name, margin=margin)


def list_options(head: type) -> dict[str, str]:
    """The options of a head with their defaults, as the page shows them."""
    given = {
        each.name: each.default
        for each in signature(head).parameters.values()
        if each.kind is each.KEYWORD_ONLY
    }
    unset = {"margin": getattr(head, "usual_margin", None), "scale": 30}
    return {name: str(unset[name] if default is None else default) for name, default in given.items()}


def test_the_page_of_losses_has_every_option_of_every_head_with_its_default() -> None:
    shown: dict[str, dict[str, str]] = {name: {} for name in HEADS}
    names: list[str] = []
    for heads, option, default, _ in table_rows("docs/losses.md", "Options"):
        names = re.findall(r"`(\w+)`", heads) or names
        for name in names:
            shown[name][option.strip("`")] = default.strip("`")
    assert shown == {name: list_options(head) for name, head in HEADS.items()}


def test_the_page_of_losses_has_the_margins_of_pairs() -> None:
    for name in PAIR_LOSSES:
        loss = build_pair_loss(name)
        told = rf"{loss.margin} (by default )?for `{name}`, of a (squared )?distance of at most "
        assert re.search(f"{told}{loss.largest_margin:g}", read_page("docs/losses.md"))


def test_one_class_is_refused() -> None:
    with pytest.raises(RecipeRefused, match="two classes"):
        build_head("softmax", 4, 1)


def test_an_unknown_loss_or_option_is_refused_with_the_known_ones() -> None:
    with pytest.raises(RecipeRefused, match=r"loss\.pair is one of contrastive, triplet, not 'quadruplet'"):
        build_pair_loss("quadruplet")
    with pytest.raises(RecipeRefused, match="no option alpha; known are margin"):
        build_pair_loss("triplet", alpha=0.2)
    with pytest.raises(RecipeRefused, match="above 0"):
        build_pair_loss("triplet", margin=0.0)
