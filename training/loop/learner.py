"""A backbone with its objective and optimiser, and one optimiser step."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import clip_grads_with_norm_, get_total_norm
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from sameface.model.faces import Floats
from sameface.training.backbones.by_name import build_backbone
from sameface.training.data.batches import Batch
from sameface.training.data.crop import to_input
from sameface.training.distributed import Processes
from sameface.training.errors import RecipeRefused, TrainingDiverged
from sameface.training.loop.learning_rate import learning_rate_at
from sameface.training.losses.total_loss import Losses, Objective
from sameface.training.recipe import Recipe

log = logging.getLogger("sameface.training")

LEAST_SCALE = 2.0**-10  # of the loss in float16: a gradient that overflows even below it has another cause


@dataclass(frozen=True, slots=True)
class Step:
    """The numbers of one optimiser step."""

    loss: float
    parts: dict[str, float]
    learning_rate: float
    gradient_norm: float


class Learner:
    """The backbone in training, with its objective and its optimiser.

    All randomness follows from the recipe's seed, the step and the rank, so a resumed run needs only weights,
    optimiser state and step to continue as if it had never stopped.
    """

    def __init__(
        self, recipe: Recipe, classes: int, processes: Processes, targets: Floats | None = None
    ) -> None:
        self.recipe, self.processes = recipe, processes
        self.targets = None if targets is None else torch.from_numpy(targets)
        if targets is not None and targets.shape[1] != recipe.backbone.dimension:
            raise RecipeRefused(f"backbone.dimension must be the teacher's, {targets.shape[1]}")
        torch.manual_seed(recipe.seed)
        backbone = build_backbone(recipe.backbone.name, recipe.backbone.dimension, **recipe.backbone.options)
        objective = Objective(recipe, classes, processes)
        self.backbone = lay_out(backbone.to(processes.device))
        self.objective = objective.to(processes.device)
        self.network: nn.Module = self.backbone
        if processes.count > 1:
            self.network = DistributedDataParallel(self.backbone)
        self.optimiser = build_optimiser(recipe, (self.backbone, self.objective))
        self.average: AveragedModel | None = None
        if recipe.optimiser.average:
            decay = get_ema_multi_avg_fn(recipe.optimiser.average)
            self.average = AveragedModel(self.backbone, multi_avg_fn=decay, use_buffers=True)
        self.precision = choose_precision(recipe.precision, processes.device)
        self.scaler = torch.amp.GradScaler(processes.device.type, enabled=self.precision == torch.float16)
        self.generator = torch.Generator(processes.device)

    @property
    def exportable(self) -> nn.Module:
        """What is measured and exported: the moving average of the backbone, if the recipe keeps one."""
        return self.average.module if self.average else self.backbone

    def close(self) -> None:
        """Drop DDP, which holds the process group."""
        self.network = self.backbone

    def learn(self, batches: Sequence[Batch], step: int) -> Step:
        """One optimiser step on the accumulated gradient of `batches`."""
        learning_rate = learning_rate_at(step, self.recipe)
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate
        self.reseed(step)
        self.optimiser.zero_grad()
        added: dict[str, Tensor] = {}
        for batch in batches:
            losses = self.forward(batch)
            self.scaler.scale(losses.total / len(batches)).backward()
            for name, part in losses.parts.items():
                added[name] = added.get(name, torch.zeros_like(part)) + part / len(batches)
        norm = self.move()
        parts = {name: float(part) for name, part in added.items()}
        return Step(sum(parts.values()), parts, learning_rate, norm)

    def forward(self, batch: Batch) -> Losses:
        """Augment a batch, embed it, and compute its losses."""
        device = self.processes.device
        crops = self.recipe.augmentation.apply(batch.crops.to(device, non_blocking=True), self.generator)
        images = to_input(crops.contiguous(memory_format=torch.channels_last))
        targets = None if self.targets is None else self.targets[batch.indices].to(device)
        with torch.autocast(device.type, self.precision, enabled=self.precision != torch.float32):
            embeddings = self.network(images)
        losses: Losses = self.objective(embeddings.float(), batch.labels.to(device), targets)
        return losses

    def move(self) -> float:
        """Clip the gradient and step the optimiser; returns the norm of the gradient over all ranks."""
        self.scaler.unscale_(self.optimiser)
        norm = self.measure_gradient()
        finite = bool(norm.isfinite())
        if not finite and not self.scaler.is_enabled():
            raise TrainingDiverged("The gradient is no number any more: try a smaller optimiser.rate.")
        if not finite:  # halved on all ranks: the scaler by itself would see only this rank's overflow
            self.scaler.update(self.scaler.get_scale() / 2)
            if self.scaler.get_scale() < LEAST_SCALE:
                raise TrainingDiverged("The gradient is no number, however small the loss is scaled.")
            return float(norm)
        clip_grads_with_norm_(self.weights(), self.recipe.optimiser.clip, norm)
        self.scaler.step(self.optimiser)
        self.scaler.update()
        if self.average:
            self.average.update_parameters(self.backbone)
        return float(norm)

    def measure_gradient(self) -> Tensor:
        """The gradient's norm over the backbone, which all ranks share, and over all shards of the head."""
        shared = get_total_norm(gradients(self.backbone.parameters()))
        own = get_total_norm(gradients(self.objective.parameters())).to(shared.device)
        return (shared**2 + self.processes.add(own**2)).sqrt()

    def weights(self) -> list[Tensor]:
        """All parameters of the optimiser."""
        return [weight for group in self.optimiser.param_groups for weight in group["params"]]

    def reseed(self, step: int) -> None:
        """Seed torch by the recipe's seed, the step and the rank."""
        drawn = np.random.SeedSequence((self.recipe.seed, step, self.processes.rank)).generate_state(1)[0]
        torch.manual_seed(int(drawn))
        self.generator.manual_seed(int(drawn))

    def state(self) -> dict[str, Any]:
        """The unsharded state, which any number of ranks can resume from; all ranks must call it at once."""
        moments = {
            name: {key: self.unshard(name, value) for key, value in self.optimiser.state[weight].items()}
            for name, weight in self.named_weights()
        }
        return {
            "backbone": self.backbone.state_dict(),
            "average": None if self.average is None else self.exportable.state_dict(),
            "objective": {
                name: self.unshard(f"objective.{name}", value)
                for name, value in self.objective.state_dict().items()
            },
            "moments": moments,
            "scaler": self.scaler.state_dict(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned; each rank keeps its shard."""
        self.backbone.load_state_dict(state["backbone"])
        if self.average is not None:
            self.exportable.load_state_dict(state["average"])
            self.average.n_averaged.fill_(1)  # any but 0: the next update averages instead of copying
        objective = {
            name: self.shard(f"objective.{name}", value) for name, value in state["objective"].items()
        }
        self.objective.load_state_dict(objective)
        for name, weight in self.named_weights():
            moments = state["moments"][name].items()
            self.optimiser.state[weight] = {key: self.shard(name, value) for key, value in moments}
        self.scaler.load_state_dict(state["scaler"])

    def named_weights(self) -> Iterator[tuple[str, Tensor]]:
        """Every parameter of backbone and objective, with its full name."""
        for prefix, module in (("backbone", self.backbone), ("objective", self.objective)):
            yield from ((f"{prefix}.{name}", weight) for name, weight in module.named_parameters())

    def unshard(self, name: str, value: Tensor) -> Tensor:
        """The whole tensor: from the shards of all ranks, or `value` if it is not sharded."""
        return self.processes.unshard(value) if is_sharded(name, value) else value

    def shard(self, name: str, value: Tensor) -> Tensor:
        """This rank's shard of the whole tensor `value`, or `value` if it is not sharded."""
        part = value[self.processes.shard(len(value))] if is_sharded(name, value) else value
        return part.to(self.processes.device) if part.ndim else part  # AdamW counts its steps on the CPU


def is_sharded(name: str, value: Tensor) -> bool:
    """Whether the tensor is sharded by class over the ranks."""
    return name.startswith("objective.head.") and value.ndim > 0


def build_optimiser(recipe: Recipe, modules: Iterable[nn.Module]) -> torch.optim.Optimizer:
    """SGD or AdamW; biases and the scales and shifts of norms have no weight decay."""
    asked = recipe.optimiser
    weights = [weight for module in modules for weight in module.parameters()]
    groups = [
        {"params": [weight for weight in weights if weight.ndim > 1], "weight_decay": asked.weight_decay},
        {"params": [weight for weight in weights if weight.ndim <= 1], "weight_decay": 0.0},
    ]
    if asked.name == "adamw":
        return torch.optim.AdamW(groups, lr=asked.rate, fused=True)
    return torch.optim.SGD(groups, lr=asked.rate, momentum=asked.momentum, fused=True)


def choose_precision(asked: str, device: torch.device) -> torch.dtype:
    """The dtype that the backbone computes in: half precision only on a GPU."""
    if asked != "float32" and device.type != "cuda":
        log.warning("computing in float32: %s is for GPUs, and there is none", asked)
        return torch.float32
    precision: torch.dtype = getattr(torch, asked)
    return precision


def lay_out(backbone: nn.Module) -> nn.Module:
    """Store the kernels as channels_last, which makes convolutions a tenth to a third faster."""
    for weight in backbone.parameters():
        if weight.ndim == 4:
            weight.data = weight.data.contiguous(memory_format=torch.channels_last)
    return backbone


def gradients(weights: Iterable[Tensor]) -> list[Tensor]:
    """The gradients of the weights that have one."""
    return [weight.grad for weight in weights if weight.grad is not None]
