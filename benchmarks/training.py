"""How much of the bare network's speed does the training loop keep?

python -m benchmarks.training [FACES] [--backbone residual] [--batch 128]
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from sameface.training.data.batches import BatchOrder, Loader
from sameface.training.data.crop import CROP_SIDE
from sameface.training.data.face_set import open_faces
from sameface.training.data.synthetic.people import write_identities
from sameface.training.distributed import Processes
from sameface.training.loop.learner import Learner
from sameface.training.loop.run_log import Journal
from sameface.training.recipe import BackboneSection, DataSection, Recipe, ScheduleSection

TURNS = 8
STEPS = 8  # per turn: few, so that noise hits all alike

Take = Callable[[], None]


def main() -> None:
    """Run the bare network and the training loop by turns, and print the table."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("faces", type=Path, nargs="?", help="crops; drawn people if not given")
    arguments.add_argument("--backbone", default="residual")
    arguments.add_argument("--batch", type=int, default=128)
    options = arguments.parse_args()
    with ExitStack() as opened, tempfile.TemporaryDirectory() as scratch:
        faces = options.faces or Path(scratch) / "people"
        if not options.faces:
            write_identities(faces, 64, 8)
        kept = Recipe(
            "benchmark",
            DataSection(str(faces)),
            BackboneSection(options.backbone),
            schedule=ScheduleSection(batch=options.batch, images=10**9),
        )
        decoding = replace(kept, data=replace(kept.data, memory=0))
        takes = {
            "bare forward and backward": take_bare(kept),
            "the loop, crops in memory": take_steps(kept, Path(scratch), opened),
            "the loop, every crop decoded": take_steps(decoding, Path(scratch), opened),
        }
        show(measure(takes, options.batch), f"{options.backbone}, batches of {options.batch}")


def take_bare(recipe: Recipe) -> Take:
    """A forward and backward pass on one batch of noise, in the memory format of the loop's batches."""
    backbone = Learner(recipe, 2, Processes(0, 1, torch.device("cpu"))).backbone
    images = torch.randn(recipe.schedule.batch, 3, CROP_SIDE, CROP_SIDE)
    images = images.contiguous(memory_format=torch.channels_last)
    return lambda: backbone(images).square().mean().backward()


def take_steps(recipe: Recipe, scratch: Path, opened: ExitStack) -> Take:
    """A step as `training.loop.train` takes it: read, augment, learn, log."""
    faces = open_faces(Path(recipe.data.path), recipe.data.min_images, recipe.data.memory)
    processes = Processes(0, 1, torch.device("cpu"))
    learner = Learner(recipe, len(faces.identities), processes)
    loader = Loader(faces, BatchOrder(faces, recipe.schedule.batch, recipe.seed))
    opened.callback(loader.close)
    folder = Path(tempfile.mkdtemp(dir=scratch))
    journal = Journal(folder, recipe, 0)
    opened.callback(journal.close)
    for place in range(len(faces)):  # fills the memory, as the first epoch does
        faces.read(place)
    steps = take_all(learner, loader, journal)
    return lambda: next(steps)


def take_all(learner: Learner, loader: Loader, journal: Journal) -> Iterator[None]:
    """Yield after every training step."""
    for step, batch in enumerate(loader.batches(0, learner.recipe.steps)):
        journal.note_step(step + 1, learner.learn([batch], step))
        yield


def measure(takes: dict[str, Take], batch: int) -> dict[str, list[float]]:
    """Images per second by name and turn."""
    speeds: dict[str, list[float]] = {name: [] for name in takes}
    for turn in range(TURNS + 1):
        for name, take in takes.items():
            start = time.perf_counter()
            for _ in range(STEPS):
                take()
            if turn:  # the first turn is the warm-up
                speeds[name].append(STEPS * batch / (time.perf_counter() - start))
    return speeds


def show(speeds: dict[str, list[float]], title: str) -> None:
    """Print the median speeds, and the median ratio to the bare network within a turn."""
    bare, *_ = speeds.values()
    table = Table("", "images/s", "of the bare network", title=title)
    for name, turns in speeds.items():
        ratio = statistics.median(ours / limit for ours, limit in zip(turns, bare, strict=True))
        table.add_row(name, f"{statistics.median(turns):.0f}", f"{ratio:.2f}")
    Console(width=90).print(table)


if __name__ == "__main__":
    main()
