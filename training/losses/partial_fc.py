"""Partial FC: class weights sharded over the ranks, each batch compared with a sample of the classes."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from sameface.training.distributed import Processes
from sameface.training.errors import RecipeRefused
from sameface.training.losses.cross_entropy import focal_mean
from sameface.training.losses.margin_head import MarginHead


class PartialHead(nn.Module):
    """A head whose class weights are sharded over the ranks, arXiv:2203.15565.

    A batch is compared with its own classes and a random sample of the others, drawn anew for each batch, so
    that neither the weights nor the logits of a million identities have to fit on one device. Every rank
    returns the loss of the whole head; its gradient covers the classes of its own shard. A class that is not
    drawn has a gradient of 0: only momentum and weight decay move it.
    """

    def __init__(self, head: MarginHead, processes: Processes, sample: float = 1.0) -> None:
        super().__init__()
        if not 0 < sample <= 1:
            raise RecipeRefused(f"loss.sample lies above 0 and at most at 1, not at {sample}")
        self.processes, self.sample = processes, sample
        shard = processes.shard(len(head.weight))
        self.first, self.classes = shard.start, shard.stop - shard.start
        for name, whole in list(head.named_parameters()):
            setattr(head, name, nn.Parameter(whole.detach()[shard].clone()))
        self.head = head

    def forward(self, embeddings: Tensor, labels: Tensor, focal_gamma: float = 0.0) -> Tensor:
        """The loss of the gathered `embeddings` (batch, dimension), whose classes are `labels` (batch,)."""
        places = labels - self.first
        places = torch.where((places >= 0) & (places < self.classes), places, -1)
        rows = None
        if self.sample < 1:
            rows, places = self.draw(places)
        logits = self.head(embeddings, places, rows)  # (batch, classes of this shard)
        return focal_mean(self.cross_entropy(logits, places), focal_gamma)

    def draw(self, places: Tensor) -> tuple[Tensor, Tensor]:
        """Sample classes of this shard, with the batch's own: `rows` (rows,), and `places` within `rows`."""
        own = places[places >= 0].unique()
        dice = torch.rand(self.classes, device=places.device)
        dice[own] = 2.0  # always drawn
        count = max(len(own), round(self.sample * self.classes), 1)
        rows = dice.topk(count).indices.sort().values
        found = torch.searchsorted(rows, places.clamp(min=0))
        return rows, torch.where(places >= 0, found, -1)

    def cross_entropy(self, logits: Tensor, places: Tensor) -> Tensor:
        """-ln(p) of each target over the classes of all ranks, (batch,)."""
        if self.processes.count == 1:
            return functional.cross_entropy(logits, places, reduction="none")
        # The other ranks' values are constants here: each rank computes the gradient of its own shard.
        own = logits.gather(1, places.clamp(min=0)[:, None]).squeeze(1)
        target = self.processes.stack(torch.where(places >= 0, own, 0.0)).sum(0)
        return self.processes.stack(logits.logsumexp(1)).logsumexp(0) - target
