"""The triplet loss, and the mining of its negatives."""

import math

import torch
from torch import Tensor

from sameface.training.losses.pair_loss import PairLoss, average


class TripletLoss(PairLoss):
    """max(0, |a - p|^2 - |a - n|^2 + m): FaceNet, arXiv:1503.03832.

    Averaged over all ordered genuine pairs (a, p) of the batch, each with a mined negative n.
    """

    largest_margin = 4.0  # squared

    def __init__(self, *, margin: float = 0.2) -> None:
        super().__init__(margin)

    def compare(self, squared: Tensor, same: Tensor) -> Tensor:
        """The mean over the genuine pairs whose anchor has a negative in the batch."""
        anchor, positive, negative = mine_negatives(squared.detach(), same, self.margin)
        return average((squared[anchor, positive] - squared[anchor, negative] + self.margin).clamp(min=0))


def mine_negatives(squared: Tensor, same: Tensor, margin: float) -> tuple[Tensor, Tensor, Tensor]:
    """Indices (triplets,) of anchors, positives and negatives, one triplet for every ordered genuine pair.

    The negative is the nearest semi-hard one: farther from the anchor than the positive, by less than
    `margin`. Without a semi-hard one it is the nearest of all: its loss is 0 if all negatives lie beyond the
    margin, and the only gradient left if all are nearer than the positive.
    """
    itself = torch.eye(len(same), dtype=torch.bool, device=same.device)
    genuine = same & ~itself & ~same.all(dim=1, keepdim=True)
    anchor, positive = genuine.nonzero(as_tuple=True)  # (triplets,)
    near = squared[anchor, positive][:, None]  # (triplets, 1)
    far = squared[anchor].masked_fill(same[anchor], math.inf)  # (triplets, batch), inf for the same person
    semi_hard = far.masked_fill((far <= near) | (far >= near + margin), math.inf)
    found = semi_hard.isfinite().any(dim=1, keepdim=True)
    return anchor, positive, torch.where(found, semi_hard, far).argmin(dim=1)
