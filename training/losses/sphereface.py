"""SphereFace: the margin multiplies the angle between an embedding and its class weight."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from sameface.training.errors import RecipeRefused
from sameface.training.losses.margin_head import MarginHead

# cos(m t) as a polynomial in cos(t): no acos, whose gradient is infinite at 0 and pi.
MULTIPLE_ANGLES: dict[int, Callable[[Tensor], Tensor]] = {
    1: lambda cosine: cosine,
    2: lambda cosine: 2 * cosine**2 - 1,
    3: lambda cosine: 4 * cosine**3 - 3 * cosine,
    4: lambda cosine: 8 * cosine**4 - 8 * cosine**2 + 1,
}


def extend_cosine(cosine: Tensor, margin: int) -> Tensor:
    """psi(t) = (-1)^k cos(m t) - 2k for t in [k pi/m, (k+1) pi/m]: cos(m t) that only falls from 0 to pi."""
    turns = [math.cos(k * math.pi / margin) for k in range(1, margin)]
    k = (cosine[..., None] < cosine.new_tensor(turns)).sum(-1)
    sign = 1 - 2 * (k % 2)
    return sign * MULTIPLE_ANGLES[margin](cosine) - 2 * k


class SphereFaceHead(MarginHead):
    """|x| psi(t), psi(t) = (-1)^k cos(m t) - 2k: A-Softmax, arXiv:1704.08063.

    The target's logit is annealed from near |x| cos(t) towards |x| psi(t), as (lambda cos(t) + psi(t)) /
    (1 + lambda) with lambda = max(lambda_min, base (1 + gamma step)^-power); `step` counts the forward passes
    of training. The defaults are those of the authors' code, whose rescaled gradients are not copied.
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
            raise RecipeRefused(f"margin is 1, 2, 3 or 4, not {margin}")
        if min(base, gamma, power, lambda_min) < 0:
            raise RecipeRefused("base, gamma, power and lambda_min are not negative")
        self.margin = int(margin)
        self.base, self.gamma, self.power, self.lambda_min = base, gamma, power, lambda_min
        self.register_buffer("step", torch.zeros((), dtype=torch.int64))  # part of a checkpoint

    def observe(self, norms: Tensor) -> None:  # noqa: ARG002 - only the pass itself is counted
        """Count the forward passes of training."""
        if self.training:
            self.step += 1

    def anneal(self) -> Tensor:
        """Lambda at the current step, as a tensor: reading its value would wait for the GPU."""
        falling = self.base * (1 + self.gamma * self.step.to(self.weight.dtype)) ** -self.power
        return falling.clamp(min=self.lambda_min)

    def penalize(self, cosine: Tensor) -> Tensor:
        """(lambda cos(t) + psi(t)) / (1 + lambda)."""
        weight = self.anneal()
        return (weight * cosine + extend_cosine(cosine, self.margin)) / (1 + weight)
