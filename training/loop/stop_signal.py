"""SIGINT and SIGTERM as a flag that the training loop reads after each step."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interruption:
    """The flag: whether a signal asked to stop, and which."""

    signal: int | None = None

    def __bool__(self) -> bool:
        return self.signal is not None

    def note(self, number: int, _: FrameType | None) -> None:
        """Set the flag, as a signal handler; a second signal has its default effect."""
        self.signal = number
        signal.signal(number, signal.SIG_DFL)


@contextmanager
def await_interruption() -> Iterator[Interruption]:
    """Within the block, the first SIGINT or SIGTERM only sets the flag."""
    interruption = Interruption()
    before = {number: signal.signal(number, interruption.note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interruption
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
