"""The faces of a collection in memory, one row each, column by column."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sameface.model.faces import Floats, Keys
from sameface.model.gallery.index.hits import Hits, best_of_each
from sameface.model.store.records import FaceBlock

GROWTH = 1.125  # capacity grows by an eighth: rarely copied, and little is wasted
ROWS_AT_ONCE = 50_000


class EmbeddingRows:
    """Columns of faces, people and embeddings; a deleted face's row is marked dead and zeroed, not removed.

    No method locks: callers hold the index's lock, because growing may move the memory.
    """

    def __init__(self, dimension: int, room: int = 0) -> None:
        self.dimension = dimension
        self.dead = 0  # rows: counted, because every search asks
        self.count = 0  # rows, dead ones included
        self._faces = np.empty(room, np.int64)
        self._people = np.empty(room, np.int64)
        self._alive = np.empty(room, bool)
        self._embeddings = np.empty((room, dimension), np.float32)

    @classmethod
    def of(cls, block: FaceBlock, alive: NDArray[np.bool_]) -> "EmbeddingRows":
        """Rows on the memory of `block` and `alive`, without a copy."""
        columns = cls(block.embeddings.shape[1])
        columns.count = len(block.faces)
        columns._faces, columns._people, columns._alive = block.faces, block.people, alive
        columns._embeddings = block.embeddings
        columns.dead = len(alive) - int(alive.sum())
        return columns

    @property
    def faces(self) -> Keys:
        """The key of each row's face; ascending, because keys only grow."""
        return self._faces[: self.count]

    @property
    def people(self) -> Keys:
        """The key of each row's person."""
        return self._people[: self.count]

    @property
    def alive(self) -> NDArray[np.bool_]:
        """For each row, whether its face can be found."""
        return self._alive[: self.count]

    @property
    def embeddings(self) -> Floats:
        """The embedding of each row, zero if the row is dead."""
        return self._embeddings[: self.count]

    def append(self, block: FaceBlock) -> None:
        """Add living rows at the end."""
        rows = slice(self.count, self.count + len(block.faces))
        if rows.stop > len(self._faces):
            self._grow(max(rows.stop, int(rows.stop * GROWTH)))
        self._faces[rows] = block.faces
        self._people[rows] = block.people
        self._alive[rows] = True
        self._embeddings[rows] = block.embeddings
        self.count = rows.stop

    def bury(self, gone: Keys) -> NDArray[np.intp]:
        """Mark the rows of the faces `gone` as dead; returns those rows."""
        rows = self.find_rows(gone)
        rows = rows[self._alive[rows]]
        self._alive[rows] = False
        self._embeddings[rows] = 0
        self.dead += len(rows)
        return rows

    def revive(self, row: int, face: int | None) -> None:
        """Give a row another face; None marks the row as dead."""
        self.dead += int(self._alive[row]) - int(face is not None)
        self._alive[row] = face is not None
        self._faces[row] = face or 0

    def find_rows(self, faces: Keys) -> NDArray[np.intp]:
        """The rows of `faces`; keys without a row are left out."""
        if not self.count:
            return np.empty(0, np.intp)
        places: NDArray[np.intp] = np.minimum(np.searchsorted(self.faces, faces), self.count - 1)
        found: NDArray[np.intp] = places[self.faces[places] == faces]
        return found

    def best_of_each(self, rows: NDArray[np.int64], similarities: Floats, limit: int) -> Hits:
        """For each probe up to `limit` people, each by the first of their living rows.

        `rows` (probes, rows) are in falling similarity; -1 stands for no row.
        """
        people = np.where(self.alive[rows] & (rows >= 0), self.people[rows], -1)
        best = best_of_each(people, rows, similarities, limit)
        return Hits(best.people, np.where(best.faces < 0, -1, self.faces[best.faces]), best.similarities)

    def blocks(self, start: int, stop: int) -> Iterator[slice]:
        """Slices of the rows from `start` to `stop`, each small enough to copy at once."""
        for first in range(start, stop, ROWS_AT_ONCE):
            yield slice(first, min(first + ROWS_AT_ONCE, stop))

    def block(self, rows: slice | NDArray[np.intp]) -> FaceBlock:
        """The columns of `rows`."""
        return FaceBlock(self.faces[rows], self.people[rows], self.embeddings[rows])

    def _grow(self, room: int) -> None:
        for column in (self._faces, self._people, self._alive):
            column.resize(room, refcheck=False)
        self._embeddings.resize((room, self.dimension), refcheck=False)
