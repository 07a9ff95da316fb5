"""L-Softmax: SphereFace's multiplicative margin, with class weights of any length."""

import torch
from torch import Tensor

from sameface.training.losses.margin_head import pick
from sameface.training.losses.sphereface import SphereFaceHead


class LSoftmaxHead(SphereFaceHead):
    """|W| |x| psi(t): large-margin softmax, arXiv:1612.02295."""

    def forward(self, embeddings: Tensor, labels: Tensor, rows: Tensor | None = None) -> Tensor:
        """Logits (batch, classes), each multiplied by the length |W| of its class weight."""
        lengths: Tensor = torch.linalg.vector_norm(pick(self.weight, rows), dim=1)  # (classes,)
        return super().forward(embeddings, labels, rows) * lengths
