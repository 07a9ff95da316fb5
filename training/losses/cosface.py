"""CosFace: the margin is subtracted from the cosine to the own class."""

import math

from torch import Tensor

from sameface.training.losses.margin_head import NormalizedHead, log


class CosFaceHead(NormalizedHead):
    """s (cos(t) - m): the large margin cosine loss, arXiv:1801.09414, and AM-Softmax, arXiv:1801.05599."""

    usual_margin = 0.35

    def check(self, dimension: int, classes: int) -> None:
        """Warn of a margin that `classes` centres cannot keep; log where no formula bounds it."""
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

    1 - cos(2 pi / C) for K = 2, C / (C-1) for C <= K + 1. For more classes it is far smaller, and the paper
    has no formula: None.
    """
    C, K = classes, dimension  # noqa: N806 - the paper's
    if K == 2:
        return 1 - math.cos(2 * math.pi / C)
    return C / (C - 1) if C <= K + 1 else None
