"""What an attack has led to."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether the server held, and one sentence that says what happens now."""

    held: bool
    now: str
