"""What pair losses share: the squared distances between all unit embeddings of a batch."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from sameface.training.errors import RecipeRefused


class PairLoss(nn.Module):
    """A loss of the squared Euclidean distances between all unit embeddings of a batch.

    Embeddings are normalised, because the server compares them by their cosine; computed in float32 or
    wider, whatever autocast says.
    """

    largest_margin: float  # no two unit embeddings are farther apart

    def __init__(self, margin: float) -> None:
        super().__init__()
        if not 0 < margin <= self.largest_margin:
            raise RecipeRefused(
                f"margin is above 0 and at most {self.largest_margin:g}, the largest distance of unit"
                f" embeddings, not {margin:g}"
            )
        self.margin = margin

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """The loss of `embeddings` (batch, dimension), whose people are `labels`; 0 without any pair."""
        with torch.autocast(embeddings.device.type, enabled=False):
            unit = functional.normalize(widen(embeddings))
            squared = (2 - 2 * unit @ unit.T).clamp(min=torch.finfo(unit.dtype).eps)  # (batch, batch)
            same = labels[:, None] == labels[None, :]  # (batch, batch)
            return self.compare(squared, same)

    def compare(self, squared: Tensor, same: Tensor) -> Tensor:
        """Hook: the loss of `squared` distances (batch, batch); `same` marks the pairs of one person."""
        raise NotImplementedError


def widen(tensor: Tensor) -> Tensor:
    """float64 as it is, any other dtype as float32."""
    return tensor if tensor.dtype == torch.float64 else tensor.float()


def average(losses: Tensor) -> Tensor:
    """The mean; of no losses 0, with a gradient of 0."""
    return losses.sum() / max(len(losses), 1)
