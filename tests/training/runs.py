"""Small real runs: drawn identities, a thin network, a few steps."""

from pathlib import Path
from typing import Any

import torch
from torch import nn

from sameface.training.data.batches import Batch, BatchOrder, Loader
from sameface.training.data.face_set import FaceSet, open_faces
from sameface.training.distributed import Processes
from sameface.training.loop.learner import Learner
from sameface.training.recipe import Recipe, read_recipe

THIN = """
[data]
path = "{faces}"
[backbone]
dimension = 16
options = {{ widths = [8, 8], depths = [1, 1] }}
[schedule]
images = 320
batch = 16
save = 80
"""
ALONE = Processes(0, 1, torch.device("cpu"))
# Nothing by chance, and steps so small that a difference in rounding stays one.
PLAIN = (
    "augmentation = { flip = 0, shift = 0, colour = 0, low_resolution = 0, occlusion = 0 }",
    "optimiser.rate = 0.001",  # at 0.01 rounding flips the choice of a triplet on AVX-512
)


def thin_recipe(folder: Path, faces: Path, *changes: str) -> Recipe:
    """A recipe for twenty steps, with these changes."""
    file = folder / "thin.toml"
    file.write_text(THIN.format(faces=faces))
    return read_recipe(file, changes)


def learn(recipe: Recipe, processes: Processes = ALONE, *, steps: int = 20) -> tuple[Learner, list[float]]:
    """Take steps with norms that stay as they are, so that a batch may be cut anywhere; the losses."""
    faces = open_faces(Path(recipe.data.path))
    learner = Learner(recipe, len(faces.identities), processes)
    freeze_norms(learner.backbone)
    losses = [
        learner.learn(batches, step).loss
        for step, batches in enumerate(all_batches(recipe, faces, processes, steps))
    ]
    return learner, losses


def all_batches(recipe: Recipe, faces: FaceSet, processes: Processes, steps: int) -> list[list[Batch]]:
    people = recipe.loss.people if recipe.loss.pair else None
    order = BatchOrder(faces, recipe.schedule.batch, recipe.seed, people)
    loader = Loader(faces, order, processes.rank, processes.count)
    each = recipe.optimiser.accumulate
    batches = list(loader.batches(0, steps * each))
    loader.close()
    return [batches[step * each : (step + 1) * each] for step in range(steps)]


def freeze_norms(backbone: nn.Module) -> None:
    for module in backbone.modules():
        if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
            module.eval()


def flat_weights(state: dict[str, Any]) -> torch.Tensor:
    return torch.cat([value.flatten().float() for value in state["backbone"].values()])
