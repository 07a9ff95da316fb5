"""Losses of pairs and triplets inside a batch, and the center loss that accompanies a head."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from sameface.training.by_name import build_choice
from sameface.training.errors import RecipeRefused


class PairLoss(nn.Module):
    """A loss of the squared Euclidean distances between all unit embeddings of a batch.

    On the unit sphere, as they are compared when serving; in float32 or wider whatever autocast says.
    """

    def __init__(self, margin: float) -> None:
        super().__init__()
        if not (math.isfinite(margin) and margin > 0):
            raise RecipeRefused(f"the margin of a pair loss is above 0, not {margin}")
        self.margin = margin

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """The loss of embeddings (batch, dimension) of the people `labels`; 0 where no pair is to be had."""
        with torch.autocast(embeddings.device.type, enabled=False):
            unit = functional.normalize(widen(embeddings))
            squared = (2 - 2 * unit @ unit.T).clamp(min=torch.finfo(unit.dtype).eps)  # (batch, batch)
            same = labels[:, None] == labels[None, :]  # (batch, batch)
            return self.compare(squared, same)

    def compare(self, squared: Tensor, same: Tensor) -> Tensor:
        """The loss of squared distances (batch, batch), given which of them are of one person."""
        raise NotImplementedError


class ContrastiveLoss(PairLoss):
    """D^2 / 2 of a genuine pair, max(0, m - D)^2 / 2 of an impostor pair: Hadsell et al., CVPR 2006.

    Every pair of the batch counts. Genuine and impostor pairs are averaged apart, since the latter are many.
    The usual margin, 1.2, is a cosine of 0.28.
    """

    def __init__(self, *, margin: float = 1.2) -> None:
        super().__init__(margin)

    def compare(self, squared: Tensor, same: Tensor) -> Tensor:
        """The mean over genuine pairs plus the mean over impostor pairs."""
        first, second = torch.ones_like(same).triu(diagonal=1).nonzero(as_tuple=True)
        squared, same = squared[first, second], same[first, second]  # (pairs,)
        short = (self.margin - squared.sqrt()).clamp(min=0)
        return average(squared[same]) / 2 + average(short[~same] ** 2) / 2


class TripletLoss(PairLoss):
    """max(0, |a - p|^2 - |a - n|^2 + m): FaceNet, arXiv:1503.03832.

    Averaged over every ordered genuine pair a, p of the batch, each with the negative n that is mined for it.
    """

    def __init__(self, *, margin: float = 0.2) -> None:
        super().__init__(margin)

    def compare(self, squared: Tensor, same: Tensor) -> Tensor:
        """The mean over the genuine pairs whose anchor meets any impostor."""
        anchor, positive, negative = mine_negatives(squared.detach(), same, self.margin)
        return average((squared[anchor, positive] - squared[anchor, negative] + self.margin).clamp(min=0))


def mine_negatives(squared: Tensor, same: Tensor, margin: float) -> tuple[Tensor, Tensor, Tensor]:
    """Anchors, positives and negatives, each (triplets,): a negative for every ordered genuine pair.

    The hardest semi-hard one: the nearest that is farther than the positive, but by less than the margin.
    Where there is none, the hardest of all, the nearest: that costs nothing if all are far, and is the only
    lesson left if all are nearer than the positive.
    """
    itself = torch.eye(len(same), dtype=torch.bool, device=same.device)
    genuine = same & ~itself & ~same.all(dim=1, keepdim=True)
    anchor, positive = genuine.nonzero(as_tuple=True)  # (triplets,)
    near = squared[anchor, positive][:, None]  # (triplets, 1)
    far = squared[anchor].masked_fill(same[anchor], math.inf)  # (triplets, batch), own images never
    semi_hard = far.masked_fill((far <= near) | (far >= near + margin), math.inf)
    found = semi_hard.isfinite().any(dim=1, keepdim=True)
    return anchor, positive, torch.where(found, semi_hard, far).argmin(dim=1)


class CenterLoss(nn.Module):
    """|x - c_y|^2 / 2, averaged over the batch: Wen et al., ECCV 2016; a companion of a head.

    Not the optimiser but every forward pass in training moves a center, after the loss was taken, by
    alpha sum(x - c) / (1 + n) over the n images of its class. Embeddings keep their own norm.
    """

    centers: Tensor

    def __init__(self, dimension: int, classes: int, *, alpha: float = 0.5) -> None:
        super().__init__()
        if not 0 <= alpha <= 1:
            raise RecipeRefused(f"the update rate of centers lies in [0, 1], not at {alpha}")
        self.alpha = alpha
        self.register_buffer("centers", torch.zeros(classes, dimension))  # (classes, dimension)

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """The loss of embeddings (batch, dimension) against the centers as they were before this batch."""
        with torch.autocast(embeddings.device.type, enabled=False):
            away = embeddings.to(self.centers.dtype) - self.centers[labels]  # (batch, dimension)
            if self.training:
                self.update(away.detach(), labels)
            return away.square().sum(dim=1).mean() / 2

    def update(self, away: Tensor, labels: Tensor) -> None:
        """Move the centers of this batch's classes towards its embeddings."""
        count = torch.bincount(labels, minlength=len(self.centers)).to(away.dtype)  # (classes,)
        self.centers.index_add_(0, labels, self.alpha * away / (1 + count[labels, None]))


PAIR_LOSSES: dict[str, type[PairLoss]] = {"contrastive": ContrastiveLoss, "triplet": TripletLoss}


def build_pair_loss(name: str, /, **options: Any) -> PairLoss:
    """The pair loss of this name; an unknown name or option is an error that lists the known ones."""
    return build_choice("pair loss", PAIR_LOSSES, name, (), options)


def widen(tensor: Tensor) -> Tensor:
    """At least float32."""
    return tensor if tensor.dtype == torch.float64 else tensor.float()


def average(losses: Tensor) -> Tensor:
    """The mean, and 0 with a gradient of 0 where there is nothing to average."""
    return losses.sum() / max(len(losses), 1)
