"""One line on a terminal that says how far a run is; lines now and then where nobody watches."""

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from sameface.model.commands.terminal import screen
from sameface.training.recipe import Recipe

PLAIN_STEPS = 200  # between two lines in a log


class ProgressLine:
    """Loss, images per second, accuracy and the time that is left."""

    def __init__(self, recipe: Recipe, first_step: int) -> None:
        self.recipe = recipe
        self._accuracy = ""
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[told]}"),
            TimeRemainingColumn(),
            TextColumn("left"),
        )
        self._bar = Progress(*columns, console=screen, disable=not screen.is_terminal)
        self._task = self._bar.add_task(recipe.name, total=recipe.steps, completed=first_step, told="")
        self._bar.start()

    def advance(self, step: int) -> None:
        """So many steps are done."""
        self._bar.update(self._task, completed=step)

    def tell(self, step: int, loss: float, speed: float) -> None:
        """How it is going."""
        told = f"loss {loss:.3f}, {speed:.0f} images/s{self._accuracy}"
        self._bar.update(self._task, told=told)
        if not screen.is_terminal and step % PLAIN_STEPS == 0:
            seconds = (self.recipe.steps - step) * self.recipe.images_per_step / speed
            self._print(f"step {step} of {self.recipe.steps}, {told}, {seconds:.0f} s left")

    def tell_accuracy(self, step: int, accuracy: float) -> None:
        """How many pairs are right."""
        self._accuracy = f", {accuracy:.1%} right"
        if not screen.is_terminal:
            self._print(f"step {step} of {self.recipe.steps}, {accuracy:.2%} of the pairs right")

    def _print(self, line: str) -> None:
        screen.print(f"{self.recipe.name}: {line}", soft_wrap=True, highlight=False)

    def close(self) -> None:
        """Leave the line as it is now."""
        self._bar.stop()
