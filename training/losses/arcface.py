"""ArcFace: the margin is added to the angle between an embedding and its class weight."""

import math

import torch
from torch import Tensor

from sameface.training.errors import RecipeRefused
from sameface.training.losses.margin_head import NormalizedHead, measure_angle


class ArcFaceHead(NormalizedHead):
    """s cos(t + m): the additive angular margin, arXiv:1801.07698.

    Beyond pi - m, where cos(t + m) would rise again, the target continues as cos(t) - m sin(m), as in the
    authors' code: a small step down, then falling as the cosine does.
    """

    usual_margin = 0.5

    def check(self, dimension: int, classes: int) -> None:  # noqa: ARG002 - the angle alone decides
        """Refuse a margin above pi / 2: the target logit of even a perfect embedding would be negative."""
        if self.margin > math.pi / 2:
            raise RecipeRefused(
                "margin is an angle of at most pi / 2 (1.5708): beyond it even a perfect embedding has a"
                f" negative logit; it is {self.margin:g}, and {self.usual_margin} is usual"
            )

    def penalize(self, cosine: Tensor) -> Tensor:
        """cos(t + m), or cos(t) - m sin(m) beyond pi - m."""
        angle = measure_angle(cosine) + self.margin
        return torch.where(angle <= math.pi, torch.cos(angle), cosine - self.margin * math.sin(self.margin))
