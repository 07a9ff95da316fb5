"""Heads whose margin multiplies the angle: SphereFace, L-Softmax before it, SphereFace-R after it."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from sameface.training.errors import RecipeRefused
from sameface.training.losses.margin_head import MarginHead, NormalizedHead, measure_angle, pick

# cos(m t) as a polynomial in cos(t): no angle, hence no infinite slope at 0 and pi.
MULTIPLE_ANGLES: dict[int, Callable[[Tensor], Tensor]] = {
    1: lambda cosine: cosine,
    2: lambda cosine: 2 * cosine**2 - 1,
    3: lambda cosine: 4 * cosine**3 - 3 * cosine,
    4: lambda cosine: 8 * cosine**4 - 8 * cosine**2 + 1,
}


def extend_cosine(cosine: Tensor, margin: int) -> Tensor:
    """psi(t) = (-1)^k cos(m t) - 2k for t in [k pi/m, (k+1) pi/m]: cos(m t), made to fall from 0 to pi."""
    turns = [math.cos(k * math.pi / margin) for k in range(1, margin)]
    k = (cosine[..., None] < cosine.new_tensor(turns)).sum(-1)
    sign = 1 - 2 * (k % 2)
    return sign * MULTIPLE_ANGLES[margin](cosine) - 2 * k


class SphereFaceHead(MarginHead):
    """|x| psi(t), psi(t) = (-1)^k cos(m t) - 2k: A-Softmax, arXiv:1704.08063.

    The target starts close to |x| cos(t) and is annealed: (lambda cos(t) + psi(t)) / (1 + lambda), with
    lambda = max(lambda_min, base (1 + gamma step)^-power), and a step for every forward pass in training.
    The schedule's defaults are those of the authors' code; the gradient is the formula's own.
    """

    step: Tensor

    def __init__(
        self,
        dimension: int,
        classes: int,
        *,
        margin: int = 4,
        base: float = 1000.0,
        gamma: float = 0.12,
        power: float = 1.0,
        lambda_min: float = 5.0,
    ) -> None:
        super().__init__(dimension, classes)
        if margin not in MULTIPLE_ANGLES:
            raise RecipeRefused(f"a multiplicative margin is 1, 2, 3 or 4, not {margin}")
        if min(base, gamma, power, lambda_min) < 0:
            raise RecipeRefused("base, gamma, power and lambda_min of an annealing are not negative")
        self.margin = int(margin)
        self.base, self.gamma, self.power, self.lambda_min = base, gamma, power, lambda_min
        self.register_buffer(
            "step", torch.zeros((), dtype=torch.int64)
        )  # saved, so that a resumed run goes on

    def observe(self, norms: Tensor) -> None:  # noqa: ARG002 - only the pass itself is counted
        """Count the forward passes of training."""
        if self.training:
            self.step += 1

    def anneal(self) -> Tensor:
        """Lambda at this step; a tensor, so that a GPU need not be waited for."""
        falling = self.base * (1 + self.gamma * self.step.to(self.weight.dtype)) ** -self.power
        return falling.clamp(min=self.lambda_min)

    def penalize(self, cosine: Tensor) -> Tensor:
        """Psi, with as much of the plain cosine as lambda still allows."""
        weight = self.anneal()
        return (weight * cosine + extend_cosine(cosine, self.margin)) / (1 + weight)


class LSoftmaxHead(SphereFaceHead):
    """|W| |x| psi(t): large-margin softmax, arXiv:1612.02295; SphereFace with class weights of any length."""

    def forward(self, embeddings: Tensor, labels: Tensor, rows: Tensor | None = None) -> Tensor:
        """Logits (batch, classes), longer for a longer class weight."""
        lengths: Tensor = torch.linalg.vector_norm(pick(self.weight, rows), dim=1)  # (classes,)
        return super().forward(embeddings, labels, rows) * lengths


class SphereFaceRHead(NormalizedHead):
    """s cos(t) against s cos(t_j / m) of the others: SphereFace-R, arXiv:2109.05565.

    Variant v2 (the margin divides the other classes' angles, which needs no psi) with hard feature
    normalisation (a fixed s) and characteristic gradient detachment (the gradient is the plain cosine's).
    """

    usual_margin = 1.4
    least_margin = 1.0

    def favour(self, cosine: Tensor) -> Tensor:
        """cos(t / m) in value, cos(t) in gradient."""
        with torch.no_grad():
            gain = torch.cos(measure_angle(cosine) / self.margin) - cosine
        return cosine + gain
