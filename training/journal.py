"""What a run writes down as it goes: a CSV, TensorBoard's events, and a line for whoever watches."""

import csv
import io
import time
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from torch.utils.tensorboard import SummaryWriter

from model.files import write_atomically
from training.learner import Step
from training.recipe import Recipe

COLUMNS = (
    "step",
    "images",
    "loss",
    "head",
    "pair",
    "center",
    "teacher",
    "rate",
    "gradient_norm",
    "images_per_second",
    "accuracy",
)
ROW_STEPS = 20  # a row has the means of so many steps
CSV_NAME = "log.csv"


class Journal:
    """Rows of `log.csv` in the run's folder, the same to TensorBoard, and a progress line on a terminal."""

    def __init__(self, folder: Path, recipe: Recipe, first_step: int) -> None:
        self.recipe = recipe
        self.file = folder / CSV_NAME
        cut_rows(self.file, first_step)
        self._open = ExitStack()
        self._events = SummaryWriter(str(folder / "tensorboard"), purge_step=first_step)
        self._open.callback(self._events.close)
        console = Console(stderr=True)
        self._plain = None if console.is_terminal else console
        self._line = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[told]}"),
            TimeRemainingColumn(),
            TextColumn("left"),
            console=console,
            disable=not console.is_terminal,
        )
        self._open.enter_context(self._line)
        self._task = self._line.add_task(recipe.name, total=recipe.steps, completed=first_step, told="")
        self._accuracy: float | None = None
        self._start_row()

    def _start_row(self) -> None:
        self._sums: dict[str, float] = defaultdict(float)
        self._steps = 0
        self._busy_seconds = 0.0
        self._since = time.perf_counter()

    def pause(self) -> None:
        """What comes now is no training: leave it out of the images per second."""
        self._busy_seconds += time.perf_counter() - self._since

    def go_on(self) -> None:
        """Training again."""
        self._since = time.perf_counter()

    def note_step(self, step: int, taken: Step) -> None:
        """Take a finished step down; `step` counts those that are done."""
        values = {"loss": taken.loss, **taken.parts, "gradient_norm": taken.gradient_norm}
        for name, value in values.items():
            self._sums[name] += value
        self._steps += 1
        self._rate = taken.rate
        self._line.update(self._task, completed=step)
        if step % ROW_STEPS == 0 or step == self.recipe.steps:
            self._finish_row(step)

    def note_accuracy(self, step: int, accuracy: float) -> None:
        """Take the accuracy on the pairs down, in a row of its own."""
        self._accuracy = accuracy
        self._write(step, {"accuracy": accuracy})
        if self._plain:
            self._plain.print(f"{self.recipe.name}: {accuracy:.2%} right after {self.images(step):,} images")

    def _finish_row(self, step: int) -> None:
        self.pause()
        means = {name: value / self._steps for name, value in self._sums.items()}
        speed = self._steps * self.recipe.images_per_step / max(self._busy_seconds, 1e-9)
        self._write(step, {**means, "rate": self._rate, "images_per_second": speed})
        told = f"loss {means['loss']:.3f}, {speed:.0f} images/s"
        if self._accuracy is not None:
            told += f", {self._accuracy:.1%} right"
        self._line.update(self._task, told=told)
        if self._plain and step % (10 * ROW_STEPS) == 0:
            seconds = (self.recipe.steps - step) * self.recipe.images_per_step / speed
            self._plain.print(
                f"{self.recipe.name}: {self.images(step):,} images, {told}, {seconds:.0f} s left"
            )
        self._start_row()

    def _write(self, step: int, values: dict[str, float]) -> None:
        row = {"step": step, "images": self.images(step)} | {
            name: f"{value:.6g}" for name, value in values.items()
        }
        with self.file.open("a", newline="") as file:
            csv.DictWriter(file, COLUMNS).writerow(row)
        for name, value in values.items():
            self._events.add_scalar(name, value, self.images(step))

    def images(self, step: int) -> int:
        """Images seen by then."""
        return step * self.recipe.images_per_step

    def close(self) -> None:
        """Leave the screen as it was."""
        self._open.close()


def cut_rows(file: Path, first_step: int) -> None:
    """Begin a CSV, or drop what a run wrote after the checkpoint that it goes on from."""
    rows: list[dict[str, Any]] = []
    if file.exists() and first_step:
        with file.open(newline="") as kept:
            rows = [row for row in csv.DictReader(kept) if int(row["step"]) <= first_step]
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\r\n")
    writer.writeheader()
    writer.writerows(rows)
    write_atomically(file, text.getvalue().encode())
