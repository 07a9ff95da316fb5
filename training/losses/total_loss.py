"""The loss of a recipe: the weighted sum of its head, pair, center and teacher losses."""

from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn import functional

from sameface.training.data.face_set import NOBODY
from sameface.training.distributed import Processes
from sameface.training.losses.by_name import build_head, build_pair_loss
from sameface.training.losses.center import CenterLoss
from sameface.training.losses.partial_fc import PartialHead
from sameface.training.recipe import Recipe


@dataclass(frozen=True, slots=True)
class Losses:
    """The losses of a batch: `total`, whose gradient is taken, and its `parts` for the log."""

    total: Tensor
    parts: dict[str, Tensor]  # weighted, over the batches of all ranks


class Objective(nn.Module):
    """The loss of a recipe, over the batches of all ranks together."""

    def __init__(self, recipe: Recipe, classes: int, processes: Processes) -> None:
        super().__init__()
        asked, dimension = recipe.loss, recipe.backbone.dimension
        self.asked, self.processes = asked, processes
        self.head = self.pair = self.centers = None
        if asked.head:
            head = build_head(asked.head, dimension, classes, **asked.head_options)
            self.head = PartialHead(head, processes, asked.sample)
        if asked.pair:
            self.pair = build_pair_loss(asked.pair, **asked.pair_options)
        if asked.center_weight:
            self.centers = CenterLoss(dimension, classes, alpha=asked.center_rate)

    def forward(self, embeddings: Tensor, labels: Tensor, targets: Tensor | None) -> Losses:
        """The losses, from this rank's `embeddings` (batch, dimension), `labels` and teacher's `targets`."""
        processes = self.processes
        embeddings, labels = processes.gather(embeddings), processes.gather(labels)
        somebody = labels != NOBODY  # a small batch may consist of blends
        people, labels = embeddings[somebody], labels[somebody]
        parts: dict[str, Tensor] = {}
        if self.pair:
            parts["pair"] = self.asked.pair_weight * self.pair(people, labels)
        if self.centers and len(people):
            parts["center"] = self.asked.center_weight * self.centers(people, labels)
        if targets is not None:
            parts["teacher"] = self.asked.teacher_weight * imitate(embeddings, processes.gather(targets))
        # Every rank computes the same values up to here, so each takes 1 / count of their gradient.
        total = sum(parts.values(), embeddings.new_zeros(())) / processes.count
        if self.head and len(people):
            parts["head"] = self.asked.head_weight * self.head(people, labels, self.asked.focal_gamma)
            total = total + parts["head"]
        return Losses(total, {name: part.detach() for name, part in parts.items()})


def imitate(embeddings: Tensor, targets: Tensor) -> Tensor:
    """The mean of 1 - cosine to the teacher's embeddings: only directions are ever compared."""
    return (1 - functional.cosine_similarity(embeddings.float(), targets)).mean()
