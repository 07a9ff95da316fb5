"""Cross entropy of a head's logits, with optional focal weighting."""

import torch
from torch import Tensor
from torch.nn import functional


def classification_loss(logits: Tensor, labels: Tensor, focal_gamma: float = 0.0) -> Tensor:
    """The mean of -(1 - p)^gamma ln(p) over a batch, p the target's probability: cross entropy at gamma 0."""
    return focal_mean(functional.cross_entropy(logits, labels, reduction="none"), focal_gamma)


def focal_mean(losses: Tensor, focal_gamma: float) -> Tensor:
    """The mean of `losses`, -ln(p) of each image, weighted by (1 - p)^gamma.

    Focal weighting, arXiv:1708.02002, reduces the weight of images that are already classified right.
    """
    if focal_gamma == 0:
        return losses.mean()
    wrong = -torch.expm1(-losses)  # 1 - p, without cancellation
    return (wrong.clamp(min=torch.finfo(wrong.dtype).tiny) ** focal_gamma * losses).mean()
