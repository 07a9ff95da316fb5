"""Callbacks to watch the work: stages and their times, the queue, faces, batches, progress."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[str, int, int | None], None]  # the step's name, items done, items in all if known


def ignore_progress(step: str, done: int, total: int | None) -> None:
    """The `Progress` of a caller without a screen."""


class Observer:
    """Callbacks that do nothing; the server's metrics override those that they count."""

    def stage(self, name: str, seconds: float) -> None:
        """A stage took `seconds` for one photo, probe or call of the store.

        Stages are queue, decode, detect, align, embed, search and store.
        """

    def queue(self, jobs: int) -> None:
        """The work queue now holds `jobs` photos, waiting and in work."""

    def faces(self, count: int) -> None:
        """The detector found `count` faces in a photo."""

    def batch(self, size: int) -> None:
        """One forward pass of the recogniser took `size` crops."""

    def similarity(self, operation: str, value: float) -> None:
        """The operation `verify` or `identify` decided on the similarity `value`."""

    def backup(self, made_at: float) -> None:
        """The newest scheduled backup is of the Unix time `made_at`."""

    def failed_backup(self) -> None:
        """A scheduled backup could not be made."""

    def lost_decisions(self, count: int) -> None:
        """`count` decisions could not be written into the audit."""


SILENT = Observer()


class Stopwatch:
    """Seconds per stage of one request, added up, in the order in which the stages first ran."""

    def __init__(self, observer: Observer = SILENT) -> None:
        self.observer = observer
        self.started_at = time.time()
        self.started = time.perf_counter()
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the time of the block to the stage `name`."""
        start = time.perf_counter()
        try:
            yield
        finally:
            seconds = time.perf_counter() - start
            self.seconds[name] = self.seconds.get(name, 0.0) + seconds
            self.observer.stage(name, seconds)

    def milliseconds(self, *others: "Stopwatch") -> dict[str, float]:
        """The sum per stage over this stopwatch and `others`; `total` is the wall time since its own start.

        Photos are worked on at the same time, so the stages may add up to more than the total.
        """
        stages: dict[str, float] = {}
        for stopwatch in (self, *others):
            for name, seconds in stopwatch.seconds.items():
                stages[name] = stages.get(name, 0.0) + seconds
        stages["total"] = time.perf_counter() - self.started
        return {name: round(seconds * 1000, 2) for name, seconds in stages.items()}
