"""What holds for every pair loss: its values against plain loops, its gradients, its edges."""

from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from sameface.training.losses.by_name import PAIR_LOSSES, build_pair_loss
from tests.training.losses.pairs import batch_of, plain_loss

CASES = [(name, margin) for name in PAIR_LOSSES for margin in (0.2, 1.2)]
every_case = pytest.mark.parametrize(("name", "margin"), CASES)


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
