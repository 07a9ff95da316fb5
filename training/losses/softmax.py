"""Softmax heads without a margin: the plain linear classifier, and the one of unit class weights."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from sameface.training.losses.margin_head import MarginHead, pick


class SoftmaxHead(MarginHead):
    """W x + b: the plain linear classifier; neither class weights nor embeddings are normalised."""

    def __init__(self, dimension: int, classes: int) -> None:
        super().__init__(dimension, classes)
        self.bias = nn.Parameter(torch.zeros(classes))  # (classes,)

    def forward(self, embeddings: Tensor, labels: Tensor, rows: Tensor | None = None) -> Tensor:  # noqa: ARG002
        """Logits (batch, classes); without a margin, `labels` change nothing."""
        with torch.autocast(embeddings.device.type, enabled=False):
            weight, bias = pick(self.weight, rows), pick(self.bias, rows)
            return functional.linear(embeddings.to(weight.dtype), weight, bias)


class ModifiedSoftmaxHead(MarginHead):
    """|x| cos(t): unit class weights, no bias, no margin; where SphereFace starts, arXiv:1704.08063."""
