"""The center loss, and how its centers move."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from sameface.training.errors import RecipeRefused
from sameface.training.losses.center import CenterLoss
from tests.training.losses.pairs import batch_of


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
    with pytest.raises(RecipeRefused, match=r"loss\.center_rate lies"):
        CenterLoss(8, 5, alpha=1.5)
