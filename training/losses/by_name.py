"""Every head by name, and the loss that is taken of its logits."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from sameface.training.by_name import build_choice
from sameface.training.losses.cosface import AdaFaceHead, ArcFaceHead, CosFaceHead
from sameface.training.losses.margin_head import MarginHead, pick
from sameface.training.losses.sphereface import LSoftmaxHead, SphereFaceHead, SphereFaceRHead


class SoftmaxHead(MarginHead):
    """W x + b: the plain linear classifier, weights and embeddings of any length."""

    def __init__(self, dimension: int, classes: int) -> None:
        super().__init__(dimension, classes)
        self.bias = nn.Parameter(torch.zeros(classes))  # (classes,)

    def forward(self, embeddings: Tensor, labels: Tensor, rows: Tensor | None = None) -> Tensor:  # noqa: ARG002
        """Logits (batch, classes); no class is a target."""
        with torch.autocast(embeddings.device.type, enabled=False):
            weight, bias = pick(self.weight, rows), pick(self.bias, rows)
            return functional.linear(embeddings.to(weight.dtype), weight, bias)


class ModifiedSoftmaxHead(MarginHead):
    """|x| cos(t): unit class weights, no bias, no margin; where SphereFace starts, arXiv:1704.08063."""


HEADS: dict[str, type[MarginHead]] = {
    "softmax": SoftmaxHead,
    "modified_softmax": ModifiedSoftmaxHead,
    "l_softmax": LSoftmaxHead,
    "sphereface": SphereFaceHead,
    "sphereface_r": SphereFaceRHead,
    "cosface": CosFaceHead,
    "arcface": ArcFaceHead,
    "adaface": AdaFaceHead,
}


def build_head(name: str, dimension: int, classes: int, /, **options: Any) -> MarginHead:
    """The head of this name; an unknown name or option is an error that lists the known ones."""
    return build_choice("head", HEADS, name, (dimension, classes), options)


def classification_loss(logits: Tensor, labels: Tensor, focal_gamma: float = 0.0) -> Tensor:
    """The mean of -(1 - p)^gamma ln(p) over a batch, p the target's probability: cross entropy at gamma 0."""
    return average_surprise(functional.cross_entropy(logits, labels, reduction="none"), focal_gamma)


def average_surprise(surprise: Tensor, focal_gamma: float) -> Tensor:
    """The mean of -ln(p), each weighted by (1 - p)^gamma.

    Focal weighting, arXiv:1708.02002, turns from what is already right; any head may be trained with it.
    """
    if focal_gamma == 0:
        return surprise.mean()
    wrong = -torch.expm1(-surprise)  # 1 - p, without cancelling
    return (wrong.clamp(min=torch.finfo(wrong.dtype).tiny) ** focal_gamma * surprise).mean()
