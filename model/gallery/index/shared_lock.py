"""Locks: for what many threads read and one writes, and for what one process does at a time."""

import fcntl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class SharedLock:
    """Many may read at the same time, or one may write."""

    def __init__(self) -> None:
        self.readers = 0
        self._waiting = 0  # writers: nobody comes in before them
        self._condition = threading.Condition()

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Together with other readers."""
        with self._condition:
            self._condition.wait_for(lambda: self._waiting == 0)
            self.readers += 1
        try:
            yield
        finally:
            with self._condition:
                self.readers -= 1
                self._condition.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """With nobody else, and nobody comes in meanwhile."""
        with self._condition:
            self._waiting += 1
            self._condition.wait_for(lambda: self.readers == 0)
            self._waiting -= 1
            try:
                yield
            finally:
                self._condition.notify_all()


@contextmanager
def hold(path: Path, *, wait: bool = False) -> Iterator[bool]:
    """Whether this process is the only one in the block, which it is if it waits for the others."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True
