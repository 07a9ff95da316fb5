"""AdaFace: the margin adapts to the quality of each image."""

import math

import torch
from torch import Tensor

from sameface.training.errors import RecipeRefused
from sameface.training.losses.margin_head import NormalizedHead, measure_angle


class AdaFaceHead(NormalizedHead):
    """s (cos(t + g_angle) - g_add), g_angle = -m q, g_add = m q + m: the adaptive margin, arXiv:2204.00964.

    q = clip(h (|x| - mean) / deviation, -1, 1) measures an image's quality by the norm of its embedding,
    without a gradient; h is `concentration`. Mean and deviation of the norms are moving averages that start
    at the values of the authors' code: the large first deviation keeps every q near 0, which is CosFace.
    t + g_angle is clamped to [0, pi], so that the target's logit never rises with the angle.
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
            raise RecipeRefused("concentration is not negative, and update_rate lies in [0, 1]")
        self.concentration, self.update_rate = concentration, update_rate
        self.register_buffer("norm_mean", torch.tensor(20.0))
        self.register_buffer("norm_deviation", torch.tensor(100.0))

    def check(self, dimension: int, classes: int) -> None:  # noqa: ARG002 - the cosine alone decides
        """Refuse a margin above 1: the best images are pushed by 2 m, and cosines lie in [-1, 1]."""
        if self.margin > 1:
            raise RecipeRefused(
                "margin is at most 1: the best images are pushed by twice as much, and cosines lie in"
                f" [-1, 1]; it is {self.margin:g}, and {self.usual_margin} is usual"
            )

    def observe(self, norms: Tensor) -> None:
        """Update the moving averages of the norms, and compute the quality q of each image."""
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
