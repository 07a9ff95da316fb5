"""The progress of a run: one line on a terminal, a line now and then in a log."""

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from sameface.model.commands.console.terminal import screen
from sameface.training.recipe import Recipe

PLAIN_STEPS = 200  # steps between two lines in a log


class ProgressLine:
    """Shows loss, images per second, accuracy and the time left."""

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
        """Show that `step` steps are done."""
        self._bar.update(self._task, completed=step)

    def tell(self, step: int, loss: float, speed: float) -> None:
        """Show the loss and the speed in images per second."""
        told = f"loss {loss:.3f}, {speed:.0f} images/s{self._accuracy}"
        self._bar.update(self._task, told=told)
        if not screen.is_terminal and step % PLAIN_STEPS == 0:
            seconds = (self.recipe.steps - step) * self.recipe.images_per_step / speed
            self._print(f"step {step} of {self.recipe.steps}, {told}, {seconds:.0f} s left")

    def tell_accuracy(self, step: int, accuracy: float) -> None:
        """Show the share of pairs that are decided right."""
        self._accuracy = f", {accuracy:.1%} right"
        if not screen.is_terminal:
            self._print(f"step {step} of {self.recipe.steps}, {accuracy:.2%} of the pairs right")

    def _print(self, line: str) -> None:
        screen.print(f"{self.recipe.name}: {line}", soft_wrap=True, highlight=False)

    def close(self) -> None:
        """Stop updating the line; it stays on the screen."""
        self._bar.stop()
