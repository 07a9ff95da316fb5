"""The report of photos that gave no crop: why, and whether it is worth looking again."""

import csv
import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from sameface.model.files import write_atomically
from sameface.training.errors import DatasetRefused

REPORT = "dropped.csv"


@dataclass(frozen=True, slots=True)
class Dropped:
    """A row of the report: a photo that has no crop, and why."""

    photo: str
    reason: str
    detail: str
    version: str  # of the photo's file: a changed one is looked at again


@contextmanager
def refusing_unwritable(path: Path) -> Iterator[None]:
    """Say in a sentence that something cannot be written."""
    try:
        yield
    except OSError as error:
        raise DatasetRefused(f"{path} cannot be written: {error.strerror or error}.") from error


def read_report(report: Path, raw: Path) -> dict[str, Dropped]:
    """The photos that were dropped before, by name, but for those that have changed or gone since."""
    if not report.exists():
        return {}
    # Names of files need not be UTF-8; what is not comes through as it is.
    with report.open(newline="", encoding="utf-8", errors="surrogateescape") as file:
        rows = [Dropped(*row) for row in csv.reader(file) if len(row) == len(fields(Dropped))]
    return {row.photo: row for row in rows if row.version == read_version(raw / row.photo)}


def write_report(report: Path, rows: Iterable[Dropped]) -> None:
    """All of the report, in the order of the photos."""
    content = io.StringIO(newline="")
    writer = csv.writer(content)
    writer.writerow(column.name for column in fields(Dropped))
    writer.writerows(astuple(row) for row in sorted(rows, key=lambda row: row.photo))
    with refusing_unwritable(report):
        write_atomically(report, content.getvalue().encode("utf-8", "surrogateescape"))


def read_version(path: Path) -> str | None:
    """What changes when a file does: its size and its time; None if there is no such file."""
    try:
        facts = path.stat()
    except (OSError, ValueError):  # a name in a damaged report may be none at all
        return None
    return f"{facts.st_size}-{facts.st_mtime_ns}"
