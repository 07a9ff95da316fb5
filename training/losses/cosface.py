"""CosFace: the margin is subtracted from the cosine to the own class."""

import math

from torch import Tensor

from sameface.training.errors import RecipeRefused
from sameface.training.losses.margin_head import NormalizedHead, log


class CosFaceHead(NormalizedHead):
    """s (cos(t) - m): the large margin cosine loss, arXiv:1801.09414, and AM-Softmax, arXiv:1801.05599."""

    usual_margin = 0.35

    def check(self, dimension: int, classes: int) -> None:
        """Refuse a margin that no two classes can keep, and warn of one that `classes` of them cannot."""
        if self.margin > 2:
            raise RecipeRefused(
                "margin is at most 2, since cosines lie in [-1, 1] and the best embedding would still be"
                f" wrong; it is {self.margin:g}, and {self.usual_margin} is usual"
            )
        largest = bound_margin(classes, dimension)
        if self.margin > largest:
            log.warning(
                "loss.head_options.margin %g is above %.4f: %d people in %d dimensions cannot be that far"
                " apart, so the loss will never be small; %g is usual",
                self.margin,
                largest,
                classes,
                dimension,
                self.usual_margin,
            )

    def penalize(self, cosine: Tensor) -> Tensor:
        """cos(t) - m."""
        return cosine - self.margin


def bound_margin(classes: int, dimension: int) -> float:
    """The largest cosine margin that C classes, spread evenly, can keep in K dimensions, arXiv:1801.09414.

    1 - cos(2 pi / C) for K = 2, C / (C-1) for C <= K + 1. Of more classes two always lie within a right angle
    (Rankin 1955), so 1 bounds it; what they can really keep is less, and has no formula.
    """
    C, K = classes, dimension  # noqa: N806 - the paper's
    if K == 2:
        return 1 - math.cos(2 * math.pi / C)
    return C / (C - 1) if C <= K + 1 else 1.0
