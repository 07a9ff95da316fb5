"""Where the time of one request goes."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from sameface.model.observer import SILENT, Observer


class Stopwatch:
    """Seconds per stage, added up, in the order in which the stages first ran."""

    def __init__(self, observer: Observer = SILENT) -> None:
        self.observer = observer
        self.started = time.perf_counter()
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count the time of this block to the stage."""
        start = time.perf_counter()
        try:
            yield
        finally:
            seconds = time.perf_counter() - start
            self.seconds[name] = self.seconds.get(name, 0.0) + seconds
            self.observer.stage(name, seconds)

    def milliseconds(self, *others: "Stopwatch") -> dict[str, float]:
        """Work per stage, that of the others included, and as `total` the wall time since this one started.

        Photos are worked on at the same time, so the stages may add up to more than the total.
        """
        stages: dict[str, float] = {}
        for stopwatch in (self, *others):
            for name, seconds in stopwatch.seconds.items():
                stages[name] = stages.get(name, 0.0) + seconds
        stages["total"] = time.perf_counter() - self.started
        return {name: round(seconds * 1000, 2) for name, seconds in stages.items()}
