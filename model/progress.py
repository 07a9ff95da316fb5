"""How long work says how far it is."""

from collections.abc import Callable

Progress = Callable[[str, int, int | None], None]  # what, how much is done, of how much if that is known


def ignore_progress(what: str, done: int, total: int | None) -> None:
    """For callers without a screen."""
