"""Entries of a batch that come as rows of arrays, many at once."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sameface.api.stream.entries import Entry
from sameface.model.errors import SamefaceError
from sameface.model.faces import Floats

ROWS_AT_ONCE = 512
ROW_BYTES = 100  # of memory that a row takes beside its embedding


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Some rows, whose embeddings are as they were sent; a row that cannot be read has an error."""

    number: int  # of the last row, from 1
    ids: Sequence[str | None]
    embeddings: Floats  # (rows, dimension)
    errors: Mapping[int, SamefaceError] = field(default_factory=dict)  # by row
    texts: Mapping[str, Sequence[str | None]] = field(default_factory=dict)  # the other columns, by name

    @property
    def count(self) -> int:
        """The number of rows."""
        return len(self.ids)

    @property
    def size(self) -> int:
        """Approximate bytes in memory."""
        return self.embeddings.nbytes + ROW_BYTES * self.count

    @property
    def numbers(self) -> range:
        """The number of each row, from 1."""
        return range(self.number - self.count + 1, self.number + 1)

    def in_blocks(self) -> Iterator["Rows"]:
        """The same rows, `ROWS_AT_ONCE` at a time."""
        wrong = sorted(self.errors)
        for first in range(0, self.count, ROWS_AT_ONCE):
            some = slice(first, first + ROWS_AT_ONCE)
            ids = self.ids[some]
            here = wrong[bisect_left(wrong, first) : bisect_left(wrong, some.stop)]
            yield Rows(
                self.number - self.count + first + len(ids),
                ids,
                self.embeddings[some],
                {row - first: self.errors[row] for row in here},
                {name: column[some] for name, column in self.texts.items()},
            )

    def to_entries(self) -> Iterator[Entry]:
        """Each row as the entry that a line with the same fields would be; what is null is left out."""
        for row, number in enumerate(self.numbers):
            texts = {name: column[row] for name, column in self.texts.items() if column[row] is not None}
            fields = {"id": self.ids[row], "embedding": self.embeddings[row].tolist(), **texts}
            yield Entry(number, self.errors.get(row, fields), self.ids[row])


def no_rows(dimension: int) -> Floats:
    """Embeddings of no row."""
    return np.zeros((0, dimension), np.float32)
