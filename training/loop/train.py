"""The training loop: batches, optimiser steps, accuracy on pairs, checkpoints."""

import logging
from collections import deque
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import distributed

from sameface.model.commands.console.terminal import report_counts
from sameface.model.data_folder import DataFolder
from sameface.model.faces import Floats
from sameface.training.data.batches import BatchOrder, Loader
from sameface.training.data.face_set import FaceSet, open_faces
from sameface.training.distributed import Processes, join_processes
from sameface.training.errors import CheckpointRefused, RecipeRefused, TrainingDiverged
from sameface.training.loop.changed_recipe import PAIRS, find_changes, refuse_changes
from sameface.training.loop.checkpoint import BEST, LAST, load_checkpoint, save_checkpoint
from sameface.training.loop.learner import Learner
from sameface.training.loop.pair_accuracy import PairTest
from sameface.training.loop.run_log import Journal
from sameface.training.loop.stop_signal import Interruption, await_interruption
from sameface.training.loop.teacher import find_teacher, load_targets
from sameface.training.recipe import Recipe

log = logging.getLogger("sameface.training")

WATCHED_STEPS = 100  # steps over which the loss is averaged to see whether it diverges
DIVERGED = 2.0  # times the average of the first steps


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a run."""

    checkpoint: Path
    images: int
    accuracy: float | None  # on the pairs, at the end
    best_accuracy: float | None
    stopped_by: int | None  # the signal that ended the run early


def train(recipe: Recipe, folder: Path, data: DataFolder, *, resume: bool = False) -> Outcome:
    """Train by `recipe` in `folder`, from the beginning or from the folder's last checkpoint."""
    with join_processes() as processes:
        if recipe.schedule.batch % processes.count:
            raise RecipeRefused(f"schedule.batch must be a multiple of the {processes.count} processes")
        asked = recipe.data
        faces = open_faces(Path(asked.path), asked.min_images, asked.memory, asked.blends)
        targets = find_targets(recipe, faces, data, processes)
        with closing(Learner(recipe, len(faces.identities), processes, targets)) as learner:
            run = Run(recipe, folder, faces, learner)
            run.begin(resume=resume)
            if processes.leads:
                announce(run)
            with await_interruption() as interruption:  # from here on there is something to save
                return run.train(interruption)


def announce(run: "Run") -> None:
    """Log what is trained on what, and from where on, if the run is resumed."""
    log.info(
        "%s: %s images of %s identities, %s steps of %s images%s, on %s",
        run.recipe.name,
        f"{len(run.faces.places):,}",
        f"{len(run.faces.identities):,}",
        f"{run.recipe.steps:,}",
        run.recipe.images_per_step,
        f" from step {run.step:,} on" if run.step else "",
        run.processes.describe(),
    )


def find_targets(recipe: Recipe, faces: FaceSet, data: DataFolder, processes: Processes) -> Floats | None:
    """The teacher's embeddings; rank 0 computes them, the others wait at a barrier and read the cache."""
    if recipe.teacher is None:
        return None
    teacher = find_teacher(recipe.teacher, data)
    if not processes.leads:
        distributed.barrier()
    with report_counts() as report:
        targets = load_targets(faces, teacher, data, report)
    if processes.leads and processes.count > 1:
        distributed.barrier()
    return targets


class Run:
    """A learner, its faces, and the folder of its checkpoints and log."""

    def __init__(self, recipe: Recipe, folder: Path, faces: FaceSet, learner: Learner) -> None:
        self.recipe, self.folder, self.faces, self.learner = recipe, folder, faces, learner
        self.processes = learner.processes
        self.fingerprint = faces.fingerprint()
        self.architecture = recipe.architecture() | {"classes": len(faces.identities)}
        self.pair_test = None
        if recipe.evaluation and self.processes.leads:
            self.pair_test = PairTest(Path(recipe.evaluation.pairs), Path(recipe.evaluation.images))
        self.step = 0
        self.accuracy: float | None = None
        self.best_accuracy: float | None = None
        self._first_losses: list[float] = []
        self._last_losses: deque[float] = deque(maxlen=WATCHED_STEPS)

    def begin(self, *, resume: bool) -> None:
        """Restore the last checkpoint, or refuse a folder that already has one."""
        last = self.folder / LAST
        if not resume and last.exists():
            raise CheckpointRefused(f"{last} is there already: go on with --resume, or use another --out.")
        self.folder.mkdir(parents=True, exist_ok=True)
        if resume:
            state = load_checkpoint(last, self.architecture)
            changes = find_changes(state["recipe"], self.recipe)
            if state.get("faces") == self.fingerprint:
                changes.pop("data.path", None)  # the same faces in another place
            refuse_changes(last, changes)
            self.learner.restore(state)
            self.step, self.accuracy = state["step"], state["accuracy"]
            if not changes.keys() & PAIRS:  # other pairs have another best
                self.best_accuracy = state["best_accuracy"]
            self._first_losses = state["first_losses"]
            self._last_losses.extend(state["last_losses"])

    def train(self, interruption: Interruption) -> Outcome:
        """Train until the recipe's steps are done or a signal asks to stop."""
        accumulate = self.recipe.optimiser.accumulate
        people = self.recipe.loss.people if self.recipe.loss.pair else None
        order = BatchOrder(self.faces, self.recipe.schedule.batch, self.recipe.seed, people)
        with ExitStack() as opened:
            loader = Loader(self.faces, order, self.processes.rank, self.processes.count)
            opened.callback(loader.close)
            journal = None
            if self.processes.leads:
                journal = Journal(self.folder, self.recipe, self.step)
                opened.callback(journal.close)
            batches = loader.batches(self.step * accumulate, self.recipe.steps * accumulate)
            while self.step < self.recipe.steps:
                taken = self.learner.learn([next(batches) for _ in range(accumulate)], self.step)
                self.watch(taken.loss)
                self.step += 1
                if journal:
                    journal.note_step(self.step, taken)
                if self.processes.agree(bool(interruption)):  # all ranks must leave after the same step
                    break
                self.measure_and_save(journal)
            self.save(LAST)
        return Outcome(
            self.folder / LAST, self.images, self.accuracy, self.best_accuracy, interruption.signal
        )

    @property
    def images(self) -> int:
        """Images seen so far."""
        return self.step * self.recipe.images_per_step

    def measure_and_save(self, journal: Journal | None) -> None:
        """Measure the accuracy on the pairs and save a checkpoint, each after its number of images."""
        evaluation, last = self.recipe.evaluation, self.step == self.recipe.steps
        measures = evaluation is not None and (last or self.passes(evaluation.every))
        saves = self.passes(self.recipe.schedule.save)
        if not measures and not saves:
            return
        if journal:
            journal.pause()
        improved = measures and self.measure_pairs(journal)
        if self.processes.agree(improved):
            self.save(BEST)
        if saves:
            self.save(LAST)
        if journal:
            journal.go_on()

    def passes(self, images: int) -> bool:
        """Whether the last step went past a multiple of `images`."""
        return self.images // images > (self.images - self.recipe.images_per_step) // images

    def measure_pairs(self, journal: Journal | None) -> bool:
        """Measure the accuracy on the pairs, on rank 0; returns whether it is the best so far."""
        if not self.pair_test or not journal:
            return False
        self.accuracy = self.pair_test.measure(self.learner.exportable, self.processes.device).accuracy
        journal.note_accuracy(self.step, self.accuracy)
        if self.best_accuracy is not None and self.accuracy <= self.best_accuracy:
            return False
        self.best_accuracy = self.accuracy
        return True

    def watch(self, loss: float) -> None:
        """Stop the run when the averaged loss is NaN or DIVERGED times its first average."""
        self._last_losses.append(loss)
        if len(self._first_losses) < WATCHED_STEPS:
            self._first_losses.append(loss)
        first, last = (sum(losses) / len(losses) for losses in (self._first_losses, self._last_losses))
        if not last <= DIVERGED * first:
            kept = self.folder / LAST
            raise TrainingDiverged(
                f"The loss is {last:.3g} after {self.images} images, and was {first:.3g} at first; "
                + (f"{kept} is from before. " if kept.exists() else "")
                + "train anew with a smaller optimiser.rate, in another --out."
            )

    def save(self, name: str) -> None:
        """Write a checkpoint; every rank contributes its shard, rank 0 writes."""
        state: dict[str, Any] = self.learner.state()
        if self.processes.leads:
            state |= {
                "architecture": self.architecture,
                "recipe": self.recipe.describe(),
                "data": self.faces.describe(),
                "faces": self.fingerprint,
                "step": self.step,
                "seen": self.images,
                "accuracy": self.accuracy,
                "best_accuracy": self.best_accuracy,
                "first_losses": self._first_losses,
                "last_losses": list(self._last_losses),
                "torch": str(torch.__version__),
            }
            save_checkpoint(self.folder / name, state)
