"""Heads and batches that tests share, and the logits of every head by plain loops over the formulas."""

import math
from typing import Any

import numpy as np
import pytest
import torch

from sameface.training.losses.by_name import build_head

DIMENSION, CLASSES, BATCH = 5, 7, 6
CASES: list[tuple[str, dict[str, Any]]] = [
    ("softmax", {}),
    ("modified_softmax", {}),
    *[("l_softmax", {"margin": margin}) for margin in (1, 2, 3, 4)],
    *[("sphereface", {"margin": margin}) for margin in (1, 2, 3, 4)],
    ("sphereface", {"margin": 4, "base": 0.0, "lambda_min": 0.0}),
    ("sphereface_r", {}),
    ("sphereface_r", {"margin": 1.7, "scale": 20.0}),
    ("cosface", {}),
    ("cosface", {"margin": 0.2, "scale": 50.0}),
    ("arcface", {}),
    ("arcface", {"margin": 1.2}),
    ("adaface", {}),
    ("adaface", {"concentration": 3.0}),
]
every_case = pytest.mark.parametrize(("name", "options"), CASES)
DETACHED = {
    "sphereface_r",
    "adaface",
}  # their papers stop a gradient, so differences of values do not show it


def head_of(name: str, dtype: Any = torch.float64, **options: Any) -> Any:
    torch.manual_seed(3)
    head = build_head(name, DIMENSION, CLASSES, **options).to(dtype)
    if name == "softmax":
        torch.nn.init.normal_(head.bias)
    if name in ("sphereface", "l_softmax"):
        head.step.fill_(400)
    if name == "adaface":
        head.norm_mean.fill_(2.0)
        head.norm_deviation.fill_(0.7)
    return head.eval()


def batch_of(dtype: Any = torch.float64) -> tuple[Any, Any]:
    torch.manual_seed(4)
    embeddings = torch.randn(BATCH, DIMENSION, dtype=torch.float64)
    embeddings[1] = 1.5 * head_of("cosface").weight[1].detach() + 0.1  # an easy one
    embeddings[2] = -1.5 * head_of("cosface").weight[2].detach() + 0.1  # beyond pi - m
    return embeddings.to(dtype), torch.arange(BATCH)


def plain_psi(angle: float, margin: int) -> float:
    k = min(int(angle * margin / math.pi), margin - 1)
    return (-1) ** k * math.cos(margin * angle) - 2 * k


def plain_target(name: str, head: Any, angle: float, norm: float) -> float:
    """The target's logit over its scale, from the paper's formula."""
    if name in ("sphereface", "l_softmax"):
        fading = max(head.lambda_min, head.base * (1 + head.gamma * 400) ** -head.power)
        return (fading * math.cos(angle) + plain_psi(angle, head.margin)) / (1 + fading)
    if name == "cosface":
        return math.cos(angle) - head.margin
    if name == "arcface":
        beyond = angle + head.margin > math.pi
        return (
            math.cos(angle) - head.margin * math.sin(head.margin) if beyond else math.cos(angle + head.margin)
        )
    if name == "adaface":
        quality = min(1.0, max(-1.0, head.concentration * (norm - 2.0) / (0.7 + 1e-3)))
        moved = min(math.pi, max(0.0, angle - head.margin * quality))
        return math.cos(moved) - (head.margin + head.margin * quality)
    return math.cos(angle)


def plain_logits(name: str, head: Any, embeddings: Any, labels: Any) -> np.ndarray:
    weights = head.weight.detach().double().tolist()
    logits = np.zeros((len(embeddings), len(weights)))
    for row, embedding in enumerate(embeddings.double().tolist()):
        for column, weight in enumerate(weights):
            dot = sum(a * b for a, b in zip(embedding, weight, strict=True))
            norm, length = math.hypot(*embedding), math.hypot(*weight)
            if name == "softmax":
                logits[row, column] = dot + head.bias[column].item()
                continue
            angle = math.acos(dot / norm / length)
            other = angle / head.margin if name == "sphereface_r" else angle
            own = column == int(labels[row])
            value = plain_target(name, head, angle, norm) if own else math.cos(other)
            scale = norm if head.scale is None else head.scale
            logits[row, column] = value * scale * (length if name == "l_softmax" else 1)
    return logits
