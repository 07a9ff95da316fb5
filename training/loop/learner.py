"""A network, what it is to learn, and one step of learning."""

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
from sameface.training.loop.learning_rate import rate_at
from sameface.training.losses.total_loss import Losses, Objective
from sameface.training.recipe import Recipe

log = logging.getLogger("sameface.training")

LEAST_SCALE = 2.0**-10  # of losses in float16: below, it is not the precision that fails


@dataclass(frozen=True, slots=True)
class Step:
    """What one step came to."""

    loss: float
    parts: dict[str, float]
    rate: float
    gradient_norm: float


class Learner:
    """A backbone on its way, with the objective and the optimiser that move it.

    All chance follows from the recipe's seed, the step and the rank, so weights, optimiser and step are
    all that a resumed run needs to go on as if it had never stopped.
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
    def best(self) -> nn.Module:
        """What would be exported now."""
        return self.average.module if self.average else self.backbone

    def learn(self, batches: Sequence[Batch], step: int) -> Step:
        """One step of the optimiser on one batch, or on several that count as one."""
        rate = rate_at(step, self.recipe)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
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
        return Step(sum(parts.values()), parts, rate, norm)

    def forward(self, batch: Batch) -> Losses:
        """The losses of one batch, its crops changed at random first."""
        device = self.processes.device
        crops = self.recipe.augmentation.apply(batch.crops.to(device, non_blocking=True), self.generator)
        images = to_input(crops.contiguous(memory_format=torch.channels_last))
        targets = None if self.targets is None else self.targets[batch.indexes].to(device)
        with torch.autocast(device.type, self.precision, enabled=self.precision != torch.float32):
            embeddings = self.network(images)
        losses: Losses = self.objective(embeddings.float(), batch.labels.to(device), targets)
        return losses

    def move(self) -> float:
        """Clip the gradient and follow it; the gradient's norm, over the weights of all processes."""
        self.scaler.unscale_(self.optimiser)
        norm = self.measure_gradient()
        finite = bool(norm.isfinite())
        if not finite and not self.scaler.is_enabled():
            raise TrainingDiverged("The gradient is no number any more: try a smaller optimiser.rate.")
        if not finite:  # for all processes alike, which the scaler alone would not see to
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
        """The norm over the backbone, which all processes share, and over the parts of the head."""
        shared = get_total_norm(gradients(self.backbone.parameters()))
        own = get_total_norm(gradients(self.objective.parameters())).to(shared.device)
        return (shared**2 + self.processes.add(own**2)).sqrt()

    def weights(self) -> list[Tensor]:
        """All that the optimiser moves."""
        return [weight for group in self.optimiser.param_groups for weight in group["params"]]

    def reseed(self, step: int) -> None:
        """Chance that depends on the step alone."""
        drawn = np.random.SeedSequence((self.recipe.seed, step, self.processes.rank)).generate_state(1)[0]
        torch.manual_seed(int(drawn))
        self.generator.manual_seed(int(drawn))

    def state(self) -> dict[str, Any]:
        """All that a resumed run needs, for any number of processes; all of them must ask at once."""
        moments = {
            name: {key: self.put_together(name, value) for key, value in self.optimiser.state[weight].items()}
            for name, weight in self.named_weights()
        }
        return {
            "backbone": self.backbone.state_dict(),
            "average": None if self.average is None else self.best.state_dict(),
            "objective": {
                name: self.put_together(f"objective.{name}", value)
                for name, value in self.objective.state_dict().items()
            },
            "moments": moments,
            "scaler": self.scaler.state_dict(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Stand where `state` was taken."""
        self.backbone.load_state_dict(state["backbone"])
        if self.average is not None:
            self.best.load_state_dict(state["average"])
            self.average.n_averaged.fill_(1)  # which only tells whether the next one is the first
        objective = {
            name: self.take_part(f"objective.{name}", value) for name, value in state["objective"].items()
        }
        self.objective.load_state_dict(objective)
        for name, weight in self.named_weights():
            moments = state["moments"][name].items()
            self.optimiser.state[weight] = {key: self.take_part(name, value) for key, value in moments}
        self.scaler.load_state_dict(state["scaler"])

    def named_weights(self) -> Iterator[tuple[str, Tensor]]:
        """Every weight by its full name."""
        for prefix, module in (("backbone", self.backbone), ("objective", self.objective)):
            yield from ((f"{prefix}.{name}", weight) for name, weight in module.named_parameters())

    def put_together(self, name: str, value: Tensor) -> Tensor:
        """A tensor of the whole run from the parts that its processes have."""
        return self.processes.join(value) if is_dealt_out(name, value) else value

    def take_part(self, name: str, value: Tensor) -> Tensor:
        """This process's part of it."""
        part = value[self.processes.share(len(value))] if is_dealt_out(name, value) else value
        return part.to(self.processes.device) if part.ndim else part  # AdamW counts its steps on the CPU


def is_dealt_out(name: str, value: Tensor) -> bool:
    """Whether every process has only its own classes of it."""
    return name.startswith("objective.head.") and value.ndim > 0


def build_optimiser(recipe: Recipe, modules: Iterable[nn.Module]) -> torch.optim.Optimizer:
    """SGD or AdamW; what is no matrix, a bias or the scale of a norm, is not pulled towards 0."""
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
    """What the backbone computes in: half precision is for GPUs."""
    if asked != "float32" and device.type != "cuda":
        log.warning("computing in float32: %s is for GPUs, and there is none", asked)
        return torch.float32
    precision: torch.dtype = getattr(torch, asked)
    return precision


def lay_out(backbone: nn.Module) -> nn.Module:
    """The backbone with its channels last in memory: convolutions are a tenth to a third faster."""
    for weight in backbone.parameters():
        if weight.ndim == 4:
            weight.data = weight.data.contiguous(memory_format=torch.channels_last)
    return backbone


def gradients(weights: Iterable[Tensor]) -> list[Tensor]:
    """Of those weights that have one."""
    return [weight.grad for weight in weights if weight.grad is not None]
