"""Heads whose margin is added: CosFace to the cosine, ArcFace to the angle, AdaFace to both."""

import math

import torch
from torch import Tensor

from sameface.training.errors import RecipeRefused
from sameface.training.losses.margin_head import NormalizedHead, log, measure_angle


class CosFaceHead(NormalizedHead):
    """s (cos(t) - m): the large margin cosine loss, arXiv:1801.09414, and AM-Softmax, arXiv:1801.05599."""

    usual_margin = 0.35

    def check(self, dimension: int, classes: int) -> None:
        """Warn of a margin that so many classes cannot keep."""
        largest = bound_margin(classes, dimension)
        if largest is None:
            log.info(
                "margin unchecked: no formula bounds it for %d classes in %d dimensions", classes, dimension
            )
        elif self.margin > largest:
            log.warning("margin %g is above %.4f: %d classes cannot keep it", self.margin, largest, classes)

    def penalize(self, cosine: Tensor) -> Tensor:
        """cos(t) - m."""
        return cosine - self.margin


def bound_margin(classes: int, dimension: int) -> float | None:
    """The largest cosine margin that C classes, spread evenly, can keep in K dimensions, arXiv:1801.09414.

    1 - cos(2 pi / C) for K = 2, and C / (C-1) for C <= K + 1. Beyond, it is far smaller, and the paper has
    no formula: None.
    """
    C, K = classes, dimension  # noqa: N806 - the paper's
    if K == 2:
        return 1 - math.cos(2 * math.pi / C)
    return C / (C - 1) if C <= K + 1 else None


class ArcFaceHead(NormalizedHead):
    """s cos(t + m): the additive angular margin, arXiv:1801.07698.

    Beyond pi - m, where cos(t + m) would rise again, the target goes on as cos(t) - m sin(m), as in the
    authors' code: a small step down, then falling as the cosine does.
    """

    usual_margin = 0.5

    def check(self, dimension: int, classes: int) -> None:  # noqa: ARG002 - the angle alone decides
        """Refuse a margin that would turn a face away from itself."""
        if self.margin > math.pi / 2:
            raise RecipeRefused(f"an angular margin is at most pi / 2, not {self.margin}")

    def penalize(self, cosine: Tensor) -> Tensor:
        """cos(t + m), or cos(t) - m sin(m) beyond pi - m."""
        angle = measure_angle(cosine) + self.margin
        return torch.where(angle <= math.pi, torch.cos(angle), cosine - self.margin * math.sin(self.margin))


class AdaFaceHead(NormalizedHead):
    """s (cos(t + g_angle) - g_add), g_angle = -m q, g_add = m q + m: the adaptive margin, arXiv:2204.00964.

    q = clip(h (|x| - mean) / deviation, -1, 1) takes an image's quality from its embedding's norm, without a
    gradient. Mean and deviation of the norms are moving averages that start where the authors' code starts
    them: with the wide deviation every q is near 0 at first, which is CosFace. t + g_angle is kept in
    [0, pi], so that the target never rises with the angle.
    """

    usual_margin = 0.4
    norm_mean: Tensor
    norm_deviation: Tensor

    def __init__(
        self,
        dimension: int,
        classes: int,
        *,
        margin: float | None = None,
        scale: float | None = None,
        probability: float = 0.9,
        warm_up: int = 0,
        concentration: float = 0.333,
        update_rate: float = 0.01,
    ) -> None:
        super().__init__(
            dimension, classes, margin=margin, scale=scale, probability=probability, warm_up=warm_up
        )
        if not (concentration >= 0 and 0 <= update_rate <= 1):
            raise RecipeRefused("a concentration is not negative, and an update rate lies in [0, 1]")
        self.concentration, self.update_rate = concentration, update_rate
        self.register_buffer("norm_mean", torch.tensor(20.0))
        self.register_buffer("norm_deviation", torch.tensor(100.0))

    def observe(self, norms: Tensor) -> None:
        """Keep the average of the norms up, and rate each image of the batch by its own."""
        super().observe(norms)
        norms = norms.detach()  # (batch, 1)
        if self.training:
            self.norm_mean.lerp_(norms.mean(), self.update_rate)
            self.norm_deviation.lerp_(norms.std(correction=0), self.update_rate)  # 0 for a batch of one
        spread = (norms - self.norm_mean) / (self.norm_deviation + 1e-3)
        self.quality = (self.concentration * spread).clamp(-1, 1)  # (batch, 1)

    def penalize(self, cosine: Tensor) -> Tensor:
        """cos(t - m q) - (m q + m)."""
        shift = self.margin * self.quality
        return torch.cos((measure_angle(cosine) - shift).clamp(0, math.pi)) - (shift + self.margin)
