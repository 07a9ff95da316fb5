"""The contrastive loss: genuine pairs together, impostor pairs at least a margin apart."""

import torch
from torch import Tensor

from sameface.training.losses.pair_loss import PairLoss, average


class ContrastiveLoss(PairLoss):
    """D^2 / 2 of a genuine pair, max(0, m - D)^2 / 2 of an impostor pair: Hadsell et al., CVPR 2006.

    Every pair of the batch counts. Genuine and impostor pairs are averaged separately, because impostor pairs
    are far more. The default margin, 1.2, is a cosine of 0.28.
    """

    largest_margin = 2.0

    def __init__(self, *, margin: float = 1.2) -> None:
        super().__init__(margin)

    def compare(self, squared: Tensor, same: Tensor) -> Tensor:
        """The mean over genuine pairs plus the mean over impostor pairs."""
        first, second = torch.ones_like(same).triu(diagonal=1).nonzero(as_tuple=True)
        squared, same = squared[first, second], same[first, second]  # (pairs,)
        short = (self.margin - squared.sqrt()).clamp(min=0)
        return average(squared[same]) / 2 + average(short[~same] ** 2) / 2
