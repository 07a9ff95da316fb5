"""The report of photos that gave no crop: why, and for which version of the file."""

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
    """A row of the report: a photo without a crop, and the reason."""

    photo: str
    reason: str
    detail: str
    version: str  # of the photo's file: when it has changed, the photo is tried again


@contextmanager
def refusing_unwritable(path: Path) -> Iterator[None]:
    """Turn an OSError of the block into a DatasetRefused that names `path`."""
    try:
        yield
    except OSError as error:
        raise DatasetRefused(f"{path} cannot be written: {error.strerror or error}.") from error


def read_report(report: Path, raw: Path) -> dict[str, Dropped]:
    """The rows of an earlier run by photo, without photos that have changed or disappeared in `raw`."""
    if not report.exists():
        return {}
    # File names need not be UTF-8: surrogateescape keeps their bytes.
    with report.open(newline="", encoding="utf-8", errors="surrogateescape") as file:
        rows = [Dropped(*row) for row in csv.reader(file) if len(row) == len(fields(Dropped))]
    return {row.photo: row for row in rows if row.version == read_version(raw / row.photo)}


def write_report(report: Path, rows: Iterable[Dropped]) -> None:
    """Replace the report atomically by `rows`, sorted by photo."""
    content = io.StringIO(newline="")
    writer = csv.writer(content)
    writer.writerow(column.name for column in fields(Dropped))
    writer.writerows(astuple(row) for row in sorted(rows, key=lambda row: row.photo))
    with refusing_unwritable(report):
        write_atomically(report, content.getvalue().encode("utf-8", "surrogateescape"))


def read_version(path: Path) -> str | None:
    """Size and modification time of a file, None if there is no file."""
    try:
        facts = path.stat()
    except (OSError, ValueError):  # a damaged report may hold impossible names
        return None
    return f"{facts.st_size}-{facts.st_mtime_ns}"
