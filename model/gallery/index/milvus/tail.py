"""The changes of a collection that Milvus may not show yet, in memory, compared exactly."""

import threading
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from sameface.model.faces import Floats
from sameface.model.gallery.index.embedding_rows import EmbeddingRows
from sameface.model.gallery.index.faiss.face_index import FaceIndex
from sameface.model.gallery.index.hits import Hits
from sameface.model.store.records import FaceChanges


class Tail:
    """The faces that came after the change number `start` and are still there, as of the last `follow`."""

    def __init__(self, dimension: int, start: int) -> None:
        self.start = start
        self._index = FaceIndex(dimension)
        self._index.sequence = start
        self._blocks: list[tuple[int, int]] = []  # the last change of each block, and the rows up to it
        self._changing = threading.Lock()

    @property
    def size(self) -> int:
        """The number of faces that can be found."""
        return self._index.size

    def follow(self, revision: int, changes_since: Callable[[int], Iterable[FaceChanges]]) -> None:
        """Apply the changes up to `revision`, or newer ones too."""

        def note_blocks(sequence: int) -> Iterator[FaceChanges]:
            for changes in changes_since(sequence):
                yield changes
                if changes.sequence:  # else a part of all faces, which end with a number
                    self._blocks.append((changes.sequence, self._index.columns.count))

        if self._index.sequence < revision:
            with self._changing:
                self._index.follow(revision, note_blocks)

    def trim(self, settled: int) -> None:
        """Drop the blocks of changes up to the number `settled`, which Milvus shows."""
        if self._is_trimmed(settled):
            return
        with self._changing:
            if self._is_trimmed(settled):  # by another search, while this one waited
                return
            done = [block for block in self._blocks if block[0] <= settled]
            wholly = len(done) == len(self._blocks)
            first = self._index.columns.count if wholly else done[-1][1]
            self.start = settled if wholly else done[-1][0]
            self._blocks = [(sequence, rows - first) for sequence, rows in self._blocks[len(done) :]]
            with self._index.lock.alone():
                old = self._index.columns
                left = old.block(np.arange(first, old.count))  # a copy: the rows before it are freed
                rows = EmbeddingRows.of(left, old.alive[first:].copy())
                self._index.adopt(rows, "exact", None, max(self._index.sequence, settled))

    def search(self, probes: Floats, limit: int) -> Hits:
        """For each probe (row) the `limit` most similar people, each by the person's most similar face."""
        return self._index.search(probes, limit)

    def _is_trimmed(self, settled: int) -> bool:
        """Whether no block is to be dropped."""
        return (not self._blocks or self._blocks[0][0] > settled) and self._index.sequence >= settled
