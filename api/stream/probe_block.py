"""Gathers the probes of a block: embeddings as rows of one array, with no schema for the plain ones."""

import base64
from typing import Any

import numpy as np
from pydantic_core import from_json

from sameface.api.body.read_body import MAX_JSON_MARKS
from sameface.api.stream.answers import Asked
from sameface.api.stream.entries import MAX_ID, Entry
from sameface.api.stream.rows import Rows, no_rows
from sameface.model.errors import SamefaceError
from sameface.model.faces import Floats, Photo
from sameface.model.gallery.probes import Probes

NUMBERS = {float, int}


class ProbeBlock:
    """Takes probes one by one or as rows, in their order."""

    def __init__(self, dimension: int) -> None:
        self._ids: list[str | None] = []
        self._numbers: list[int] = []
        self._places: list[int] = []
        self._rows: list[Floats] = [no_rows(dimension)]
        self._photos: dict[int, Photo] = {}
        self._errors: dict[int, SamefaceError] = {}

    def add(self, name: str | None, number: int, probe: Photo | Floats | SamefaceError) -> None:
        """Add a photo, an embedding as it was sent, (dimension,), or why there is neither."""
        place = len(self._ids)
        self._ids.append(name)
        self._numbers.append(number)
        if isinstance(probe, SamefaceError):
            self._errors[place] = probe
        elif isinstance(probe, np.ndarray):
            self._places.append(place)
            self._rows.append(probe[None])
        else:
            self._photos[place] = probe

    def add_rows(self, rows: Rows) -> None:
        """Add all rows, some of which may be errors."""
        first = len(self._ids)
        sound = [row for row in range(rows.count) if row not in rows.errors]
        self._ids += rows.ids
        self._numbers += rows.numbers
        self._places += [first + row for row in sound]
        self._rows.append(rows.embeddings[sound] if rows.errors else rows.embeddings)
        self._errors |= {first + row: error for row, error in rows.errors.items()}

    def finish(self) -> tuple[Asked, Probes]:
        """Who asked, and the probes."""
        places, rows = np.array(self._places, np.intp), np.concatenate(self._rows)
        probes = Probes.of_rows(len(self._ids), places, rows, self._photos, self._errors)
        return Asked(self._ids, self._numbers), probes


def read_plain_line(entry: Entry, dimension: int) -> tuple[str, Floats] | None:
    """The id and the embedding of a line that has these two alone and is sound; None for any other entry.

    It takes a sixth of the time of the schema, which reads all the others and says what is wrong with them.
    """
    if not isinstance(entry.content, bytes) or len(entry.content) > MAX_JSON_MARKS:
        return None
    try:
        fields = from_json(entry.content)
    except ValueError:
        return None
    if not isinstance(fields, dict) or fields.keys() != {"id", "embedding"}:
        return None
    name, numbers = fields["id"], fields["embedding"]
    if not isinstance(name, str) or not 0 < len(name) <= MAX_ID:
        return None
    values = read_numbers(numbers)
    return (name, values) if values is not None and values.shape == (dimension,) else None


def read_numbers(numbers: Any) -> Floats | None:
    """A list of numbers, or base64 of little-endian float32, as an array; None if it is something else."""
    try:
        if isinstance(numbers, str):
            return np.frombuffer(base64.b64decode(numbers, validate=True), "<f4")
        if isinstance(numbers, list) and set(map(type, numbers)) <= NUMBERS:
            with np.errstate(over="ignore"):  # infinite, which is refused later
                return np.array(numbers, np.float32)
    except (ValueError, OverflowError):
        pass
    return None
