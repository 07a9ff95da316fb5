"""FAISS as a cache of a collection's embeddings that follows its change sequence."""

import threading
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from sameface.model.faces import Floats
from sameface.model.gallery.index.embedding_rows import EmbeddingRows, Hit
from sameface.model.gallery.index.faiss_search import (
    OUTGROWN,
    Faiss,
    build_faiss_index,
    choose_kind,
    compare_all,
    find_candidates,
    prefer_matrix_products,
)
from sameface.model.gallery.index.person_means import PersonMeans
from sameface.model.gallery.index.shared_lock import SharedLock
from sameface.model.store.records import FaceChanges

DEAD_SHARE = 0.1  # of the rows that may be dead before the index is rebuilt
DEAD_ROWS = 1_000
FEWEST_CANDIDATES = 32
MOST_CANDIDATES = 1_024  # a probe that needs more is compared with every row
RANKED_AT_ONCE = 32  # probes, whose candidates fit into the CPU's cache
CANDIDATES_PER_ROW = 4  # found: half precision may misorder close ones


class FaceIndex:
    """Search over the embeddings of one collection, as of the change number `sequence`.

    FAISS may find candidates in half precision; similarities come from the full embeddings in `columns`.
    """

    def __init__(self, dimension: int, device: str = "cpu") -> None:
        prefer_matrix_products()
        self.device = device
        self.sequence = 0
        self.kind = "exact"
        self.columns = EmbeddingRows(dimension)
        self.faiss_index: Faiss = None
        self.lock = SharedLock()
        self._made_for = 0  # the number of rows when the FAISS index was built
        self._means: PersonMeans | None = None
        self._following = threading.Lock()

    @property
    def size(self) -> int:
        """The number of faces that can be found."""
        return self.columns.count - self.columns.dead

    def adopt(self, columns: EmbeddingRows, kind: str, faiss_index: Faiss, sequence: int) -> None:
        """Take over rows and their FAISS index, as of the change number `sequence`."""
        self.columns, self.kind, self.faiss_index = columns, kind, faiss_index
        self.sequence, self._made_for = sequence, columns.count

    def follow(self, revision: int, changes_since: Callable[[int], Iterable[FaceChanges]]) -> None:
        """Apply the changes up to `revision`, or newer ones too; one thread at a time."""
        with self._following:
            if self.sequence >= revision:
                return
            for changes in changes_since(self.sequence):
                with self.lock.alone():
                    self._apply(changes)

    def search(self, probes: Floats, limit: int) -> list[list[Hit]]:
        """For each probe (row) the `limit` most similar people, each by the person's most similar face."""
        with self.lock.shared():
            results: list[list[Hit]] = [[] for _ in probes]
            missing = list(range(len(probes)))
            count = min(self.columns.count, limit * 2)
            while missing and count:
                rows, similarities = self._find_nearest(np.ascontiguousarray(probes[missing]), count)
                for place, near, similar in zip(missing, rows, similarities, strict=True):
                    results[place] = self.columns.best_of_each(near, similar, limit)
                missing = [place for place in missing if len(results[place]) < limit]
                count = 0 if count == self.columns.count else min(self.columns.count, count * 4)
            return results

    def search_means(self, probes: Floats, limit: int) -> list[list[Hit]]:
        """For each probe (row) the `limit` people with the highest cosine to their unit mean embedding."""
        with self.lock.shared():
            means = self._get_means()
            count = min(means.count, limit + means.dead)
            if not count:
                return [[] for _ in probes]
            similarities, rows = compare_all(probes, means.embeddings, count)
            return [
                means.best_of_each(near, similar, limit)
                for near, similar in zip(rows, similarities, strict=True)
            ]

    @property
    def needs_rebuilding(self) -> bool:
        """Whether many rows are dead, or too many were added for this kind of search or this FAISS index."""
        rows = self.columns.count
        wanted = choose_kind(self.size, self.device, self.kind)
        outgrown = self.faiss_index is not None and rows > OUTGROWN * max(self._made_for, DEAD_ROWS)
        return self.columns.dead > max(DEAD_ROWS, DEAD_SHARE * rows) or wanted != self.kind or outgrown

    def rebuild(self) -> None:
        """Copy the living rows and build a FAISS index of them, while searches and changes go on."""
        with self.lock.shared():
            old = self.columns
            seen, kept = old.count, np.flatnonzero(old.alive)
        new = EmbeddingRows(old.dimension, room=len(kept))
        for some in new.blocks(0, len(kept)):
            with self.lock.shared():
                new.append(old.block(kept[some]))
        kind = choose_kind(new.count, self.device, self.kind)
        faiss_index = build_faiss_index(kind, new)
        with self.lock.alone():
            new.bury(old.faces[kept[~old.alive[kept]]])
            since = np.flatnonzero(old.alive[seen:]) + seen
            new.append(old.block(since))
            if faiss_index is not None and len(since):
                faiss_index.add(old.embeddings[since])
            self.adopt(new, kind, faiss_index, self.sequence)

    def _apply(self, changes: FaceChanges) -> None:
        """Apply the next piece of the change sequence; the caller holds the lock alone."""
        came = changes.came
        self.columns.append(came)
        if self.faiss_index is not None and len(came.faces):
            self.faiss_index.add(came.embeddings)
        owners = self.columns.bury(changes.gone)
        if self._means and not self._means.renew(np.union1d(came.people, owners), self.columns):
            self._means = None
        self.sequence = changes.sequence

    def _find_nearest(self, probes: Floats, count: int) -> tuple[NDArray[np.int64], Floats]:
        """For each probe the nearest rows and their similarities, nearest first; -1 stands for no row."""
        embeddings = self.columns.embeddings
        if self.faiss_index is None or count * CANDIDATES_PER_ROW > MOST_CANDIDATES:
            similarities, rows = compare_all(probes, embeddings, count)
            return rows, similarities
        wanted = max(FEWEST_CANDIDATES, count * CANDIDATES_PER_ROW)
        rows = find_candidates(self.faiss_index, probes, wanted, alone=self.lock.readers == 1)
        exact = np.empty(rows.shape, np.float32)  # (probes, candidates)
        for some in (slice(first, first + RANKED_AT_ONCE) for first in range(0, len(rows), RANKED_AT_ONCE)):
            exact[some] = np.matmul(embeddings[rows[some]], probes[some, :, None])[:, :, 0]
        exact[rows < 0] = -np.inf
        order = np.argsort(-exact, axis=1, kind="stable")
        return np.take_along_axis(rows, order, 1), np.take_along_axis(exact, order, 1)

    def _get_means(self) -> EmbeddingRows:
        if self._means is None:
            self._means = PersonMeans(self.columns)
        return self._means.rows
