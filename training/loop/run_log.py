"""The log of a run: rows of a CSV, and the same for TensorBoard."""

import csv
import io
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from torch.utils.tensorboard import SummaryWriter

from sameface.model.files import write_atomically
from sameface.training.loop.learner import Step
from sameface.training.loop.progress_line import ProgressLine
from sameface.training.recipe import Recipe

PARTS = ("loss", "head", "pair", "center", "teacher")
COLUMNS = ("step", "images", *PARTS, "rate", "gradient_norm", "images_per_second", "accuracy")
ROW_STEPS = 20  # steps whose means make one row
CSV_NAME = "log.csv"


class Journal:
    """Writes `log.csv` and TensorBoard's events to the run's folder, and shows the progress line."""

    def __init__(self, folder: Path, recipe: Recipe, first_step: int) -> None:
        self.recipe = recipe
        self.file = folder / CSV_NAME
        cut_rows(self.file, first_step)
        self._events = SummaryWriter(str(folder / "tensorboard"), purge_step=self.images(first_step) + 1)
        self._line = ProgressLine(recipe, first_step)
        self._start_row()

    def _start_row(self) -> None:
        self._sums: dict[str, float] = defaultdict(float)
        self._steps = 0
        self._busy_seconds = 0.0
        self.go_on()

    def pause(self) -> None:
        """Stop the clock of images per second."""
        self._busy_seconds += time.perf_counter() - self._since

    def go_on(self) -> None:
        """Start the clock of images per second."""
        self._since = time.perf_counter()

    def note_step(self, step: int, taken: Step) -> None:
        """Log a finished step; `step` is the number of steps done."""
        for name, value in {"loss": taken.loss, **taken.parts, "gradient_norm": taken.gradient_norm}.items():
            self._sums[name] += value
        self._steps += 1
        self._line.advance(step)
        if step % ROW_STEPS == 0 or step == self.recipe.steps:
            self._finish_row(step, taken.learning_rate)

    def _finish_row(self, step: int, learning_rate: float) -> None:
        self.pause()
        means = {name: value / self._steps for name, value in self._sums.items()}
        speed = self._steps * self.recipe.images_per_step / max(self._busy_seconds, 1e-9)
        self._write(step, {**means, "rate": learning_rate, "images_per_second": speed})
        self._line.tell(step, means["loss"], speed)
        self._start_row()

    def note_accuracy(self, step: int, accuracy: float) -> None:
        """Log the accuracy on the pairs, in a row of its own."""
        self._write(step, {"accuracy": accuracy})
        self._line.tell_accuracy(step, accuracy)

    def _write(self, step: int, values: dict[str, float]) -> None:
        numbers = {name: f"{value:.6g}" for name, value in values.items()}
        with self.file.open("a", newline="") as file:
            csv.DictWriter(file, COLUMNS).writerow({"step": step, "images": self.images(step), **numbers})
        for name, value in values.items():
            self._events.add_scalar(name, value, self.images(step))

    def images(self, step: int) -> int:
        """Images seen after `step` steps."""
        return step * self.recipe.images_per_step

    def close(self) -> None:
        """Close the events and the progress line."""
        self._events.close()
        self._line.close()


def cut_rows(file: Path, first_step: int) -> None:
    """Begin the CSV, or drop the rows after `first_step`, the step of the checkpoint that is resumed."""
    rows: list[dict[str, Any]] = []
    if file.exists() and first_step:
        with file.open(newline="") as kept:
            rows = [row for row in csv.DictReader(kept) if int(row["step"]) <= first_step]
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS)
    writer.writeheader()
    writer.writerows(rows)
    write_atomically(file, text.getvalue().encode())
