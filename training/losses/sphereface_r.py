"""SphereFace-R: the margin divides the angles to the other classes."""

import torch
from torch import Tensor

from sameface.training.losses.margin_head import NormalizedHead, measure_angle


class SphereFaceRHead(NormalizedHead):
    """s cos(t) for the own class against s cos(t_j / m) for the others: arXiv:2109.05565.

    The paper's variant v2, which needs no psi, with hard feature normalisation (a fixed s) and
    characteristic gradient detachment (the gradient is that of the plain cosine).
    """

    usual_margin = 1.4
    least_margin = 1.0

    def favour(self, cosine: Tensor) -> Tensor:
        """cos(t / m) in value, cos(t) in gradient."""
        with torch.no_grad():
            gain = torch.cos(measure_angle(cosine) / self.margin) - cosine
        return cosine + gain
