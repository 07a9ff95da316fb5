"""The head that every margin loss shares: cosines in, a target made harder, logits out."""

import logging
import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from sameface.training.errors import RecipeRefused

log = logging.getLogger("sameface.training")

MANY_CLASSES = 10_000


class MarginHead(nn.Module):
    """Logits |x| cos(t_j) from unit class weights and no bias; a head overrides what becomes of the target.

    Computed in the precision of the weights, which is float32 in training, whatever autocast says.
    """

    scale: float | None = None  # None: the embedding's own norm

    def __init__(self, dimension: int, classes: int) -> None:
        super().__init__()
        if dimension < 1 or classes < 2:
            raise RecipeRefused(f"a head needs two classes in one dimension, not {classes} in {dimension}")
        self.weight = nn.Parameter(torch.empty(classes, dimension))  # (classes, dimension)
        nn.init.xavier_normal_(self.weight)

    def forward(self, embeddings: Tensor, labels: Tensor, rows: Tensor | None = None) -> Tensor:
        """Logits (batch, classes) of embeddings (batch, dimension) that belong to the classes `labels`.

        With `rows`, only these classes count and labels are places among them; a label of -1 belongs to
        none of the classes that are here, and no target is made harder for it.
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
        """Look at the batch's norms (batch, 1) before its margins are set."""

    def penalize(self, cosine: Tensor) -> Tensor:
        """What becomes of the cosine to an embedding's own class."""
        return cosine

    def favour(self, cosine: Tensor) -> Tensor:
        """What becomes of the cosines to the other classes."""
        return cosine


class NormalizedHead(MarginHead):
    """Embeddings are normalised too, and a fixed scale s takes the place of their norm.

    With `warm_up` the margin rises to its full size over so many forward passes of training: a network that
    cannot tell anybody apart yet learns little from a task that is made harder still.
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
        self.register_buffer("step", torch.zeros((), dtype=torch.int64))  # saved: a resumed run goes on
        if not (math.isfinite(self.margin) and self.margin >= self.least_margin):
            raise RecipeRefused(f"a margin of this head is at least {self.least_margin:g}, not {self.margin}")
        if not (math.isfinite(self.scale) and self.scale > 0):
            raise RecipeRefused(f"a scale is above 0, not {self.scale}")
        if warm_up < 0:
            raise RecipeRefused(f"a margin warms up over 0 passes or more, not {warm_up}")
        self.check(dimension, classes)
        least_scale = bound_scale(classes, probability)
        if self.scale < least_scale:
            log.warning(
                "scale %g is below %.2f: not all %d class centres can reach a probability of %g",
                self.scale,
                least_scale,
                classes,
                probability,
            )

    def check(self, dimension: int, classes: int) -> None:
        """Refuse a margin that cannot work, or warn of it."""

    def observe(self, norms: Tensor) -> None:  # noqa: ARG002 - only the pass itself is counted
        """Count the forward passes of training, and let the margin rise with them."""
        if not self.warm_up:
            return
        if self.training:
            self.step += 1
        share = min(1.0, int(self.step) / self.warm_up)
        self.margin = self.least_margin + share * (self.full_margin - self.least_margin)


def pick(weights: Tensor, rows: Tensor | None) -> Tensor:
    """The weights of these classes, or of all."""
    return weights if rows is None else weights[rows]


def bound_scale(classes: int, probability: float) -> float:
    """(C-1)/C ln((C-1) P / (1-P)): below it class centres cannot all have probability P, arXiv:1801.09414."""
    if not 0 < probability < 1:
        raise RecipeRefused(f"a probability lies between 0 and 1, not at {probability}")
    C, P = classes, probability  # noqa: N806 - the paper's
    return (C - 1) / C * math.log((C - 1) * P / (1 - P))


def measure_angle(cosine: Tensor) -> Tensor:
    """The angle of a cosine, kept a rounding step off 0 and pi, where its slope would be infinite."""
    step = torch.finfo(cosine.dtype).eps
    return torch.acos(cosine.clamp(step - 1, 1 - step))
