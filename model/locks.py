"""A lock for what many read and one writes."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class SharedLock:
    """Many may read at the same time, or one may write."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._readers = 0

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Together with other readers."""
        with self._condition:
            self._readers += 1
        try:
            yield
        finally:
            with self._condition:
                self._readers -= 1
                self._condition.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """With nobody else, and nobody comes in meanwhile."""
        with self._condition:
            self._condition.wait_for(lambda: self._readers == 0)
            yield
