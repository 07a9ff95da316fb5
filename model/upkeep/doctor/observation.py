"""One line of the doctor's page."""

from dataclasses import dataclass

from sameface.model.faces import Value


@dataclass(frozen=True, slots=True)
class Observation(Value):
    """What was found; `fault` says what is wrong with it and what to do, None if nothing is.

    No value names a person, a collection or a secret: the page is made to be pasted into reports.
    """

    part: str
    name: str
    value: str
    fault: str | None = None


def write_bytes(count: int) -> str:
    """A number of bytes in the unit that fits."""
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.3g} {unit}"
        amount /= 1000
    return f"{amount:.3g} TB"
