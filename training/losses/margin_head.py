"""What heads share: cosines to the class weights, a margin on the target's cosine, logits."""

import logging
import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from sameface.training.errors import RecipeRefused

log = logging.getLogger("sameface.training")

MANY_CLASSES = 10_000


class MarginHead(nn.Module):
    """Logits |x| cos(t_j) from unit class weights, without bias; a subclass overrides one of the hooks.

    Computed in the dtype of the weights, float32 in training, whatever autocast says.
    """

    scale: float | None = None  # None: the norm of each embedding

    def __init__(self, dimension: int, classes: int) -> None:
        super().__init__()
        if dimension < 1 or classes < 2:
            raise RecipeRefused(f"a head needs two classes in one dimension, not {classes} in {dimension}")
        self.weight = nn.Parameter(torch.empty(classes, dimension))  # (classes, dimension)
        nn.init.xavier_normal_(self.weight)

    def forward(self, embeddings: Tensor, labels: Tensor, rows: Tensor | None = None) -> Tensor:
        """Logits (batch, classes) of `embeddings` (batch, dimension), whose classes are `labels` (batch,).

        With `rows`, only the classes `rows` are computed, and labels are indices into `rows`. A label of -1
        is a class of another rank's shard: its row has no target, and no margin is applied.
        """
        with torch.autocast(embeddings.device.type, enabled=False):
            embeddings = embeddings.to(self.weight.dtype)
            norms = torch.linalg.vector_norm(embeddings, dim=1, keepdim=True)  # (batch, 1)
            cosine = functional.linear(
                functional.normalize(embeddings), functional.normalize(pick(self.weight, rows))
            )  # (batch, classes)
            self.observe(norms)
            target = labels.clamp(min=0)[:, None]  # (batch, 1)
            logits = self.favour(cosine)
            own = torch.where(
                labels[:, None] >= 0, self.penalize(cosine.gather(1, target)), logits.gather(1, target)
            )
            return logits.scatter(1, target, own) * (norms if self.scale is None else self.scale)

    def observe(self, norms: Tensor) -> None:
        """Hook: sees the norms (batch, 1) of the embeddings before the margins are applied."""

    def penalize(self, cosine: Tensor) -> Tensor:
        """Hook: makes the cosines (batch, 1) to the own classes smaller."""
        return cosine

    def favour(self, cosine: Tensor) -> Tensor:
        """Hook: makes the cosines (batch, classes) to the other classes larger."""
        return cosine


class NormalizedHead(MarginHead):
    """Normalises embeddings, too: a fixed scale s replaces their norm.

    The margin rises linearly to its full size over the first `warm_up` forward passes of training: a network
    that cannot tell people apart yet learns little from a harder task.
    """

    usual_margin: float
    least_margin = 0.0
    step: Tensor

    def __init__(
        self,
        dimension: int,
        classes: int,
        *,
        margin: float | None = None,
        scale: float | None = None,
        probability: float = 0.9,
        warm_up: int = 0,
    ) -> None:
        super().__init__(dimension, classes)
        self.margin = self.full_margin = self.usual_margin if margin is None else margin
        self.scale = (64.0 if classes >= MANY_CLASSES else 30.0) if scale is None else scale
        self.warm_up = warm_up
        self.register_buffer("step", torch.zeros((), dtype=torch.int64))  # part of a checkpoint
        if not (math.isfinite(self.margin) and self.margin >= self.least_margin):
            raise RecipeRefused(f"margin is at least {self.least_margin:g}, not {self.margin}")
        if not (math.isfinite(self.scale) and self.scale > 0):
            raise RecipeRefused(f"scale is above 0, not {self.scale}")
        if warm_up < 0:
            raise RecipeRefused(f"warm_up is 0 passes or more, not {warm_up}")
        self.check(dimension, classes)
        least_scale = bound_scale(classes, probability)
        if self.scale < least_scale:
            log.warning(
                "loss.head_options.scale %g is below %.2f: not all %d people can reach a probability of %g",
                self.scale,
                least_scale,
                classes,
                probability,
            )

    def check(self, dimension: int, classes: int) -> None:
        """Hook: refuses a margin that cannot work, or warns of it."""

    def observe(self, norms: Tensor) -> None:  # noqa: ARG002 - only the pass itself is counted
        """Count the forward passes of training, and set the margin of the warm-up."""
        if not self.warm_up:
            return
        if self.training:
            self.step += 1
        share = min(1.0, int(self.step) / self.warm_up)
        self.margin = self.least_margin + share * (self.full_margin - self.least_margin)


def pick(weights: Tensor, rows: Tensor | None) -> Tensor:
    """The weights of the classes `rows`, or of all classes if `rows` is None."""
    return weights if rows is None else weights[rows]


def bound_scale(classes: int, probability: float) -> float:
    """The least scale at which all C class centres can reach probability P, arXiv:1801.09414."""
    if not 0 < probability < 1:
        raise RecipeRefused(f"probability lies between 0 and 1, not at {probability}")
    C, P = classes, probability  # noqa: N806 - the paper's
    return (C - 1) / C * math.log((C - 1) * P / (1 - P))


def measure_angle(cosine: Tensor) -> Tensor:
    """acos, clamped one rounding step away from 0 and pi, where its gradient would be infinite."""
    step = torch.finfo(cosine.dtype).eps
    return torch.acos(cosine.clamp(step - 1, 1 - step))
