"""A readers-writer lock between the threads of a process."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class SharedLock:
    """Many threads may hold the lock shared, or one alone; waiting writers come before new readers."""

    def __init__(self) -> None:
        self._readers = 0
        self._waiting = 0  # writers: no new reader enters before them
        self._condition = threading.Condition()

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Hold the lock together with other readers."""
        with self._condition:
            self._condition.wait_for(lambda: self._waiting == 0)
            self._readers += 1
        try:
            yield
        finally:
            with self._condition:
                self._readers -= 1
                self._condition.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the lock alone, once all readers have left."""
        with self._condition:
            self._waiting += 1
            self._condition.wait_for(lambda: self._readers == 0)
            self._waiting -= 1
            try:
                yield
            finally:
                self._condition.notify_all()
