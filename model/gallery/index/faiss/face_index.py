"""FAISS as a cache of a collection's embeddings that follows its change sequence."""

import threading
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from sameface.model.faces import Floats
from sameface.model.gallery.index.embedding_rows import EmbeddingRows
from sameface.model.gallery.index.faiss.candidates import (
    OUTGROWN,
    Faiss,
    blank_codes,
    build_faiss_index,
    choose_kind,
    compare_all,
    count_candidates,
    prefer_matrix_products,
    rank_candidates,
)
from sameface.model.gallery.index.faiss.shared_cores import CORES
from sameface.model.gallery.index.faiss.shared_lock import SharedLock
from sameface.model.gallery.index.hits import Hits
from sameface.model.gallery.index.person_means import PersonMeans
from sameface.model.store.records import FaceChanges

DEAD_SHARE = 0.1  # of the rows that may be dead before the index is rebuilt
DEAD_ROWS = 1_000


class FaceIndex:
    """Search over the embeddings of one collection, as of the change number `sequence`.

    FAISS may find candidates by less than the full embeddings in `columns`, from which similarities come.
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
            if not self.sequence and self.columns.count:  # of a reading of all faces that failed
                with self.lock.alone():
                    self.adopt(EmbeddingRows(self.columns.dimension), "exact", None, 0)
                    self._means = None
            for changes in changes_since(self.sequence):
                with self.lock.alone():
                    self._apply(changes)

    def search(self, probes: Floats, limit: int, *, exact: bool = False) -> Hits:
        """For each probe (row) the `limit` most similar people, each by the person's most similar face.

        If it is to be `exact`, all embeddings are compared in full, without FAISS's candidates.
        """
        with self.lock.shared(), CORES.share(len(probes)):
            found = Hits.none(len(probes), limit)
            missing = np.arange(len(probes))
            count = min(self.columns.count, limit * 2)
            while len(missing) and count:
                near = self._find_nearest(np.ascontiguousarray(probes[missing]), count, exact=exact)
                found.put(missing, self.columns.best_of_each(*near, limit))
                missing = missing[found.faces[missing, -1] < 0]
                count = 0 if count == self.columns.count else min(self.columns.count, count * 4)
            return found

    def search_means(self, probes: Floats, limit: int) -> Hits:
        """For each probe (row) the `limit` people with the highest cosine to their unit mean embedding."""
        with self.lock.shared(), CORES.share(len(probes)):
            means = self._get_means()
            count = min(means.count, limit + means.dead)
            if not count:
                return Hits.none(len(probes), limit)
            similarities, rows = compare_all(probes, means.embeddings, count)
            return means.best_of_each(rows, similarities, limit)

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
            dead = new.bury(old.faces[kept[~old.alive[kept]]])
            if kind == "codes":
                blank_codes(faiss_index, dead)
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
        dead = self.columns.bury(changes.gone)
        if self.kind == "codes":
            blank_codes(self.faiss_index, dead)
        changed = np.union1d(came.people, self.columns.people[dead])
        if self._means and not self._means.renew(changed, self.columns):
            self._means = None
        self.sequence = changes.sequence

    def _find_nearest(self, probes: Floats, count: int, *, exact: bool) -> tuple[NDArray[np.int64], Floats]:
        """For each probe the nearest rows and their similarities, nearest first; -1 stands for no row."""
        embeddings = self.columns.embeddings
        if not exact and (wanted := count_candidates(self.kind, count, len(embeddings))):
            _, candidates = self.faiss_index.search(probes, wanted)
            similarities, rows = rank_candidates(candidates, probes, embeddings, count)
        else:
            similarities, rows = compare_all(probes, embeddings, count)
        return rows, similarities

    def _get_means(self) -> EmbeddingRows:
        if self._means is None:
            self._means = PersonMeans(self.columns)
        return self._means.rows
