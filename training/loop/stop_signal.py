"""SIGINT and SIGTERM as a wish that the loop fulfils at its next step."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interruption:
    """Whether somebody asked to stop, and by which signal."""

    signal: int | None = None

    def __bool__(self) -> bool:
        return self.signal is not None

    def note(self, number: int, _: FrameType | None) -> None:
        """Remember it; the second time, the signal does what it always does."""
        self.signal = number
        signal.signal(number, signal.SIG_DFL)


@contextmanager
def await_interruption() -> Iterator[Interruption]:
    """Within the block, the first signal only asks."""
    interruption = Interruption()
    before = {number: signal.signal(number, interruption.note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interruption
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
