"""What holds for every head: its values against plain loops over the formula, its gradients, its edges."""

import math
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch.func import functional_call

from sameface.training.losses.by_name import build_head
from sameface.training.losses.cross_entropy import classification_loss
from tests.training.losses.heads import (
    BATCH,
    CASES,
    CLASSES,
    DETACHED,
    DIMENSION,
    batch_of,
    every_case,
    head_of,
    plain_logits,
)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 2e-5), (torch.float64, 1e-11)])
@every_case
def test_logits_are_those_of_the_formula(
    name: str, options: dict[str, Any], dtype: Any, tolerance: float
) -> None:
    head, (embeddings, labels) = head_of(name, dtype, **options), batch_of(dtype)
    logits = head(embeddings, labels)
    assert logits.dtype == dtype
    expected = plain_logits(name, head, embeddings, labels)
    np.testing.assert_allclose(logits.detach().numpy(), expected, rtol=tolerance, atol=tolerance * 64)


@pytest.mark.parametrize("gamma", [0.0, 2.0])
@pytest.mark.parametrize(("name", "options"), [case for case in CASES if case[0] not in DETACHED])
def test_gradient_is_the_slope_of_the_loss(name: str, options: dict[str, Any], gamma: float) -> None:
    head, (embeddings, labels) = head_of(name, **options), batch_of()

    names, parameters = zip(*head.named_parameters(), strict=True)

    def loss(embeddings: Any, *parameters: Any) -> Any:
        logits = functional_call(head, dict(zip(names, parameters, strict=True)), (embeddings, labels))
        return classification_loss(logits, labels, gamma)

    assert torch.autograd.gradcheck(loss, (embeddings.requires_grad_(), *parameters))


@pytest.mark.parametrize(("name", "options"), [case for case in CASES if case[0] in DETACHED])
def test_gradient_beside_a_detached_term_is_the_one_derived_by_hand(
    name: str, options: dict[str, Any]
) -> None:
    """dL/dcos = (p - y) s slope / batch, where slope is 1 but for AdaFace's target: sin(t - m q) / sin(t)."""
    head, (embeddings, labels) = head_of(name, **options), batch_of()
    classification_loss(head(embeddings.requires_grad_(), labels), labels).backward()

    x, w, y = embeddings.detach().numpy(), head.weight.detach().numpy(), labels.numpy()
    norms, lengths = np.linalg.norm(x, axis=1, keepdims=True), np.linalg.norm(w, axis=1, keepdims=True)
    cosine = (x / norms) @ (w / lengths).T
    logits = plain_logits(name, head, embeddings.detach(), labels)
    slope = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    slope[np.arange(BATCH), y] -= 1
    slope *= head.scale / BATCH
    if name == "adaface":
        angle = np.arccos(cosine[np.arange(BATCH), y])
        quality = np.clip(head.concentration * (norms[:, 0] - 2.0) / (0.7 + 1e-3), -1, 1)
        moved = angle - head.margin * quality
        slope[np.arange(BATCH), y] *= np.where(
            (moved > 0) & (moved < math.pi), np.sin(moved) / np.sin(angle), 0
        )
    of_x = sum(
        slope[:, [j]] * (w[j] / lengths[j] - cosine[:, [j]] * x / norms) / norms for j in range(CLASSES)
    )
    of_w = sum(slope[[i]].T * (x[i] / norms[i] - cosine[[i]].T * w / lengths) / lengths for i in range(BATCH))
    np.testing.assert_allclose(embeddings.grad.numpy(), of_x, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(head.weight.grad.numpy(), of_w, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("norm", [0.5, 2.0, 9.0])
@every_case
def test_target_logit_falls_with_the_angle(name: str, options: dict[str, Any], norm: float) -> None:
    head = head_of(name, **options)
    with torch.no_grad():
        head.weight.zero_()[:, 0] = 1
    angles = torch.linspace(0, math.pi, 2001, dtype=torch.float64)
    embeddings = torch.zeros(len(angles), DIMENSION, dtype=torch.float64)
    embeddings[:, 0], embeddings[:, 1] = norm * angles.cos(), norm * angles.sin()
    steps = head(embeddings, torch.zeros(len(angles), dtype=torch.int64))[:, 0].diff()
    assert (steps <= 0).all()
    if name != "adaface":  # which keeps its angle in [0, pi], and is level there
        assert (steps < 0).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("sign", [1, -1])
@every_case
def test_angles_of_zero_and_pi_are_finite(name: str, options: dict[str, Any], sign: int, dtype: Any) -> None:
    torch.manual_seed(0)
    head = build_head(name, 64, 50, **options).to(torch.float64 if dtype == torch.float64 else torch.float32)
    embeddings = (sign * 3.7 * head.weight.detach()).to(dtype).requires_grad_()
    labels = torch.arange(50)
    classification_loss(head(embeddings, labels), labels, focal_gamma=0.5).backward()
    assert embeddings.grad.isfinite().all()
    assert head.weight.grad.isfinite().all()


@every_case
def test_an_embedding_of_zeros_is_finite(name: str, options: dict[str, Any]) -> None:
    head = head_of(name, torch.float32, **options)
    embeddings = torch.zeros(1, DIMENSION, requires_grad=True)
    labels = torch.zeros(1, dtype=torch.int64)
    classification_loss(head(embeddings, labels), labels).backward()
    assert embeddings.grad.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@every_case
def test_half_precision_stays_near(name: str, options: dict[str, Any], dtype: Any) -> None:
    head, (embeddings, labels) = head_of(name, torch.float32, **options), batch_of(torch.float32)
    exact = head(embeddings, labels)
    rounded = head(embeddings.to(dtype), labels)
    assert rounded.dtype == torch.float32
    scale = head.scale or float(embeddings.norm(dim=1).max())
    step = 16 * torch.finfo(dtype).eps  # psi is at most m^2 times as steep as the cosine
    torch.testing.assert_close(rounded, exact, rtol=0, atol=step * scale)
    with torch.autocast("cpu", dtype=dtype):
        assert torch.equal(head(embeddings, labels), exact)


@every_case
def test_norms_that_half_precision_cannot_hold_are_finite(name: str, options: dict[str, Any]) -> None:
    head, (embeddings, labels) = head_of(name, torch.float32, **options), batch_of(torch.float16)
    embeddings = (embeddings * 2e4).requires_grad_()
    with torch.autocast("cpu", dtype=torch.float16):
        logits = head(embeddings, labels)
        classification_loss(logits, labels).backward()
    assert logits.isfinite().all()
    assert embeddings.grad.isfinite().all()


@every_case
def test_a_network_learns_with_it(name: str, options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    pictures, labels = torch.randn(40, 12), torch.arange(40) % CLASSES
    backbone = torch.nn.Sequential(torch.nn.Linear(12, 32), torch.nn.ReLU(), torch.nn.Linear(32, DIMENSION))
    head = build_head(name, DIMENSION, CLASSES, **options)
    optimizer = torch.optim.AdamW([*backbone.parameters(), *head.parameters()], lr=0.01)

    for _ in range(200):
        optimizer.zero_grad()
        classification_loss(head(backbone(pictures), labels), labels).backward()
        optimizer.step()
    nearest = torch.nn.functional.linear(
        backbone(pictures), torch.nn.functional.normalize(head.weight)
    ).argmax(1)
    assert nearest.eq(labels).float().mean() > 0.9
