"""Pair and triplet losses, the mining of negatives, and the center loss, against plain loops."""

import math
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from sameface.training.errors import RecipeRefused
from sameface.training.losses.triplet import PAIR_LOSSES, CenterLoss, build_pair_loss, mine_negatives

CASES = [(name, margin) for name in PAIR_LOSSES for margin in (0.2, 1.2)]
every_case = pytest.mark.parametrize(("name", "margin"), CASES)


def batch_of(dtype: Any = torch.float64, people: int = 5, images: int = 3) -> tuple[Any, Any]:
    torch.manual_seed(2)
    labels = torch.arange(people).repeat_interleave(images)
    people_apart = torch.randn(people, 8, dtype=torch.float64)[labels]
    return (people_apart + 0.9 * torch.randn(len(labels), 8, dtype=torch.float64)).to(dtype), labels


def plain_distances(embeddings: Any) -> np.ndarray:
    """Squared, between unit embeddings."""
    rows = embeddings.detach().double().tolist()
    unit = [[value / math.hypot(*row) for value in row] for row in rows]
    return np.array([[sum((a - b) ** 2 for a, b in zip(x, y, strict=True)) for y in unit] for x in unit])


def plain_negative(
    squared: np.ndarray, labels: list[int], anchor: int, positive: int, margin: float
) -> int | None:
    near = squared[anchor, positive]
    others = [index for index, label in enumerate(labels) if label != labels[anchor]]
    semi_hard = [index for index in others if near < squared[anchor, index] < near + margin]
    return min(semi_hard or others, key=lambda index: squared[anchor, index], default=None)


def plain_loss(name: str, embeddings: Any, labels: Any, margin: float) -> float:
    squared, people = plain_distances(embeddings), labels.tolist()
    pairs = [(i, j) for i in range(len(people)) for j in range(len(people)) if i != j]
    genuine = [pair for pair in pairs if people[pair[0]] == people[pair[1]]]
    if name == "triplet":
        negatives = [plain_negative(squared, people, *pair, margin) for pair in genuine]
        return float(
            np.mean(
                [
                    max(0, squared[anchor, positive] - squared[anchor, negative] + margin)
                    for (anchor, positive), negative in zip(genuine, negatives, strict=True)
                ]
            )
        )
    impostor = [pair for pair in pairs if people[pair[0]] != people[pair[1]]]
    return float(
        np.mean([squared[pair] / 2 for pair in genuine])
        + np.mean([max(0, margin - math.sqrt(squared[pair])) ** 2 / 2 for pair in impostor])
    )


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
@every_case
def test_loss_is_that_of_the_formula(name: str, margin: float, dtype: Any, tolerance: float) -> None:
    embeddings, labels = batch_of(dtype)
    loss = build_pair_loss(name, margin=margin)(embeddings, labels)
    assert loss.dtype == dtype
    assert float(loss) == pytest.approx(plain_loss(name, embeddings, labels, margin), rel=tolerance)
    assert float(loss) > 0


@every_case
def test_gradient_is_the_slope_of_the_loss(name: str, margin: float) -> None:
    embeddings, labels = batch_of()
    loss = build_pair_loss(name, margin=margin)
    assert torch.autograd.gradcheck(lambda batch: loss(batch, labels), embeddings.requires_grad_())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@every_case
def test_half_precision_stays_near(name: str, margin: float, dtype: Any) -> None:
    embeddings, labels = batch_of(torch.float32)
    loss = build_pair_loss(name, margin=margin)
    exact, rounded = loss(embeddings, labels), loss(embeddings.to(dtype), labels)
    assert rounded.dtype == torch.float32
    torch.testing.assert_close(rounded, exact, rtol=0, atol=16 * torch.finfo(dtype).eps)
    with torch.autocast("cpu", dtype=dtype):
        assert torch.equal(loss(embeddings, labels), exact)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@every_case
def test_equal_and_opposite_embeddings_are_finite(name: str, margin: float, dtype: Any) -> None:
    torch.manual_seed(0)
    one = torch.randn(1, 64)
    embeddings = torch.cat([one, one, -one, one, 300 * one, -one]).to(dtype).requires_grad_()
    loss = build_pair_loss(name, margin=margin)(embeddings, torch.tensor([0, 0, 0, 1, 1, 1]))
    loss.backward()
    assert loss.isfinite()
    assert embeddings.grad.isfinite().all()


@pytest.mark.parametrize("labels", [[0, 1, 2, 3], [0, 0, 0, 0], [5]])
@every_case
def test_a_batch_without_pairs_of_a_kind_is_finite(name: str, margin: float, labels: list[int]) -> None:
    embeddings = torch.randn(len(labels), 8, requires_grad=True)
    loss = build_pair_loss(name, margin=margin)(embeddings, torch.tensor(labels))
    loss.backward()
    assert loss.isfinite()
    assert embeddings.grad.isfinite().all()


@pytest.mark.parametrize("margin", [0.05, 0.2, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_mining_picks_what_brute_force_picks(seed: int, margin: float) -> None:
    torch.manual_seed(seed)
    labels = torch.randint(6, (24,))
    squared = torch.from_numpy(plain_distances(torch.randn(24, 3)))
    found = mine_negatives(squared, labels[:, None] == labels[None, :], margin)
    expected = [
        (anchor, positive, plain_negative(squared.numpy(), labels.tolist(), anchor, positive, margin))
        for anchor in range(24)
        for positive in range(24)
        if anchor != positive and labels[anchor] == labels[positive]
    ]
    assert list(zip(*(indices.tolist() for indices in found), strict=True)) == expected


@pytest.mark.parametrize(
    ("negatives", "mined"),
    [
        ([0.3, 0.55, 0.65, 2.0], 1),  # the hardest semi-hard one, not the hard one
        ([0.3, 0.4, 0.9, 2.0], 0),  # none is semi-hard: the hardest
        ([0.9, 0.8, 1.5, 2.0], 1),  # all beyond the margin: the hardest, which costs nothing
    ],
)
def test_semi_hard_negatives_come_first(negatives: list[float], mined: int) -> None:
    squared = torch.full((6, 6), 3.0)
    squared[0] = torch.tensor([0.0, 0.5, *negatives])
    people = torch.tensor([0, 0, 1, 2, 3, 4])
    anchor, positive, negative = mine_negatives(squared, people[:, None] == people, margin=0.2)
    assert (int(anchor[0]), int(positive[0]), int(negative[0])) == (0, 1, 2 + mined)


def test_one_person_alone_has_no_triplet() -> None:
    assert float(build_pair_loss("triplet")(torch.randn(4, 8), torch.zeros(4))) == 0


def test_an_unknown_loss_or_option_is_refused_with_the_known_ones() -> None:
    with pytest.raises(RecipeRefused, match="known are contrastive, triplet"):
        build_pair_loss("quadruplet")
    with pytest.raises(RecipeRefused, match="no option alpha; known are margin"):
        build_pair_loss("triplet", alpha=0.2)
    with pytest.raises(RecipeRefused, match="above 0"):
        build_pair_loss("triplet", margin=0.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_centers_move_by_the_papers_rule(dtype: Any) -> None:
    embeddings, labels = batch_of(dtype, people=3, images=2)
    labels[0] = 2  # three of class 2, one of class 0
    center_loss = CenterLoss(8, 4, alpha=0.3).to(dtype)
    centers = np.zeros((4, 8))
    rows = embeddings.double().numpy()
    for _ in range(3):
        expected = np.mean(
            [((x - centers[label]) ** 2).sum() / 2 for x, label in zip(rows, labels, strict=True)]
        )
        assert float(center_loss(embeddings, labels)) == pytest.approx(expected, rel=1e-5)
        before = centers.copy()
        for label in range(4):
            members = [x for x, own in zip(rows, labels.tolist(), strict=True) if own == label]
            delta = sum((before[label] - x for x in members), np.zeros(8)) / (1 + len(members))
            centers[label] = before[label] - 0.3 * delta
        np.testing.assert_allclose(center_loss.centers.numpy(), centers, rtol=1e-5, atol=1e-7)


def test_centers_are_no_parameters_and_rest_in_evaluation() -> None:
    embeddings, labels = batch_of(torch.float32)
    center_loss = CenterLoss(8, 5).eval()
    center_loss(embeddings, labels)
    assert not list(center_loss.parameters())
    assert not center_loss.centers.any()
    assert list(center_loss.state_dict()) == ["centers"]


def test_gradient_of_the_center_loss_pulls_towards_the_center() -> None:
    embeddings, labels = batch_of()
    center_loss = CenterLoss(8, 5).double()
    center_loss(embeddings, labels)
    before = center_loss.centers[labels].clone()
    center_loss(embeddings.requires_grad_(), labels).backward()
    torch.testing.assert_close(embeddings.grad, (embeddings.detach() - before) / len(labels))
    assert torch.autograd.gradcheck(lambda batch: center_loss.eval()(batch, labels), embeddings)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_center_loss_of_half_precision_stays_near(dtype: Any) -> None:
    embeddings, labels = batch_of(torch.float32)
    center_loss = CenterLoss(8, 5).eval()
    exact, rounded = center_loss(embeddings, labels), center_loss(embeddings.to(dtype), labels)
    torch.testing.assert_close(rounded, exact, rtol=2 * torch.finfo(dtype).eps, atol=0)
    assert center_loss((200 * embeddings).to(dtype), labels).isfinite()


def test_an_update_rate_beyond_one_is_refused() -> None:
    with pytest.raises(RecipeRefused, match="update rate"):
        CenterLoss(8, 5, alpha=1.5)
