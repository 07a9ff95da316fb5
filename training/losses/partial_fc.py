"""Partial FC: the classes of a head dealt out to the processes, a batch compared with a sample of them."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from sameface.training.distributed import Processes
from sameface.training.errors import RecipeRefused
from sameface.training.losses.by_name import average_surprise
from sameface.training.losses.margin_head import MarginHead


class PartialHead(nn.Module):
    """Every process keeps its share of the class weights; together they are one head, arXiv:2203.15565.

    A batch is compared with its own classes and a random sample of the others, drawn anew for each batch, so
    that neither weights nor logits of a million identities have to fit in one place. The value is that of
    the whole head on every process; the gradient is that of this process's classes. A class that is not drawn
    has none, and coasts on its momentum.
    """

    def __init__(self, head: MarginHead, processes: Processes, sample: float = 1.0) -> None:
        super().__init__()
        if not 0 < sample <= 1:
            raise RecipeRefused(f"loss.sample lies above 0 and at most at 1, not at {sample}")
        self.processes, self.sample = processes, sample
        share = processes.share(len(head.weight))
        self.first, self.classes = share.start, share.stop - share.start
        for name, whole in list(head.named_parameters()):
            setattr(head, name, nn.Parameter(whole.detach()[share].clone()))
        self.head = head

    def forward(self, embeddings: Tensor, labels: Tensor, focal_gamma: float = 0.0) -> Tensor:
        """The loss of all processes' embeddings (batch, dimension) that belong to the classes `labels`."""
        places = labels - self.first
        places = torch.where((places >= 0) & (places < self.classes), places, -1)
        rows = None
        if self.sample < 1:
            rows, places = self.draw(places)
        logits = self.head(embeddings, places, rows)  # (batch, classes of this process)
        return average_surprise(self.surprise(logits, places), focal_gamma)

    def draw(self, places: Tensor) -> tuple[Tensor, Tensor]:
        """Classes to compare with (rows,), the batch's own among them, and the places of targets in them."""
        own = places[places >= 0].unique()
        dice = torch.rand(self.classes, device=places.device)
        dice[own] = 2.0  # always drawn
        count = max(len(own), round(self.sample * self.classes), 1)
        rows = dice.topk(count).indices.sort().values
        found = torch.searchsorted(rows, places.clamp(min=0))
        return rows, torch.where(places >= 0, found, -1)

    def surprise(self, logits: Tensor, places: Tensor) -> Tensor:
        """-ln(p) of each target over the classes of all processes, (batch,)."""
        if self.processes.count == 1:
            return functional.cross_entropy(logits, places, reduction="none")
        # What the others know is a constant here: they take the gradient of it.
        own = logits.gather(1, places.clamp(min=0)[:, None]).squeeze(1)
        target = self.processes.complete(torch.where(places >= 0, own, 0.0)).sum(0)
        return self.processes.complete(logits.logsumexp(1)).logsumexp(0) - target
