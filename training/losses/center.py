"""The center loss, a companion of a head: draws each embedding towards the center of its class."""

import torch
from torch import Tensor, nn

from sameface.training.errors import RecipeRefused


class CenterLoss(nn.Module):
    """|x - c_y|^2 / 2, averaged over the batch: Wen et al., ECCV 2016.

    Centers are moved by every forward pass of training, not by the optimiser: after the loss is computed, by
    alpha sum(x - c) / (1 + n) over the n images of the class. Embeddings are not normalised.
    """

    centers: Tensor

    def __init__(self, dimension: int, classes: int, *, alpha: float = 0.5) -> None:
        super().__init__()
        if not 0 <= alpha <= 1:
            raise RecipeRefused(f"loss.center_rate lies in [0, 1], not at {alpha}")
        self.alpha = alpha
        self.register_buffer("centers", torch.zeros(classes, dimension))  # (classes, dimension)

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """The loss of `embeddings` (batch, dimension) against the centers before this batch's update."""
        with torch.autocast(embeddings.device.type, enabled=False):
            away = embeddings.to(self.centers.dtype) - self.centers[labels]  # (batch, dimension)
            if self.training:
                self.update(away.detach(), labels)
            return away.square().sum(dim=1).mean() / 2

    def update(self, away: Tensor, labels: Tensor) -> None:
        """Move the centers of the classes `labels` by the differences `away` (batch, dimension)."""
        count = torch.bincount(labels, minlength=len(self.centers)).to(away.dtype)  # (classes,)
        self.centers.index_add_(0, labels, self.alpha * away / (1 + count[labels, None]))
