"""FAISS as a cache of a collection's embeddings that follows its change sequence."""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import faiss
import numpy as np
from numpy.typing import NDArray

from model.faces import Floats
from model.records import Change

ROWS_AT_ONCE = 10_000
COMPACT_SHARE = 0.1  # of the rows may be dead before they are cleared away
COMPACT_ROWS = 1_000
BLAS_THRESHOLD = 2048  # probes x dimension from which FAISS multiplies matrices: far below its own default


@dataclass(frozen=True, slots=True)
class Hit:
    """A person, and the face by which the person was found."""

    person: int
    face: int
    similarity: float


class FaceIndex:
    """Exact search over the embeddings of one collection, up to the change it has followed to.

    Row i of FAISS is face `faces[i]` of person `people[i]`. A deleted row is zeroed at once, so that nothing
    of it stays in memory, and cleared away with others later.
    """

    def __init__(self, dimension: int) -> None:
        faiss.cvar.distance_compute_blas_threshold = BLAS_THRESHOLD
        self.dimension = dimension
        self.sequence = 0
        self._flat = faiss.IndexFlatIP(dimension)
        self._faces = np.empty(0, np.int64)  # ascending, because keys only grow
        self._people = np.empty(0, np.int64)
        self._alive = np.empty(0, bool)
        self._lock = SharedLock()

    def __len__(self) -> int:
        """Faces that can be found."""
        return int(self._alive.sum())

    def follow(self, changes: Iterable[Change]) -> None:
        """Apply the changes after `sequence`, in order."""
        added: list[Change] = []
        removed: list[int] = []
        last = self.sequence
        for change in changes:
            last = change.sequence
            if change.embedding is not None and change.face is not None:
                added.append(change)
            elif change.kind == "delete" and change.face is not None:
                removed.append(change.face)
        with self._lock.alone():
            if last <= self.sequence:
                return
            self._add([change for change in added if change.sequence > self.sequence])
            self._remove(np.array(removed, np.int64))
            self.sequence = last

    def search(self, probes: Floats, limit: int) -> list[list[Hit]]:
        """For each probe (row) the best `limit` people, each by its best face."""
        with self._lock.shared():
            results: list[list[Hit]] = [[] for _ in probes]
            missing = list(range(len(probes)))
            fetch = min(self._flat.ntotal, limit * 2)
            while missing and fetch:
                similarities, rows = self._flat.search(np.ascontiguousarray(probes[missing]), fetch)
                for place, row, similarity in zip(missing, rows, similarities, strict=True):
                    results[place] = self._best_of_each(row, similarity, limit)
                missing = [place for place in missing if len(results[place]) < limit]
                fetch = 0 if fetch == self._flat.ntotal else min(self._flat.ntotal, fetch * 4)
            return results

    def search_means(self, probes: Floats, limit: int) -> list[list[Hit]]:
        """For each probe the best `limit` people by the cosine to their unit mean embedding."""
        with self._lock.shared():
            alive = np.flatnonzero(self._alive)
            people, first, of_person = np.unique(self._people[alive], return_index=True, return_inverse=True)
            means = np.zeros((len(people), self.dimension), np.float32)
            np.add.at(means, of_person, self._embeddings()[alive])
            means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
            faces = self._faces[alive[first]]
            results = []
            for similarities in probes @ means.T:
                best = np.argsort(-similarities, kind="stable")[:limit]
                found = zip(
                    people[best].tolist(), faces[best].tolist(), similarities[best].tolist(), strict=True
                )
                results.append([Hit(*hit) for hit in found])
            return results

    def _best_of_each(self, rows: NDArray[np.int64], similarities: Floats, limit: int) -> list[Hit]:
        """Rows in falling similarity to one hit per person."""
        valid = rows >= 0
        rows, similarities = rows[valid], similarities[valid]
        alive = self._alive[rows]
        rows, similarities = rows[alive], similarities[alive]
        _, first = np.unique(self._people[rows], return_index=True)
        best = np.sort(first)[:limit]
        people, faces = self._people[rows[best]].tolist(), self._faces[rows[best]].tolist()
        return [Hit(*hit) for hit in zip(people, faces, similarities[best].tolist(), strict=True)]

    def _add(self, changes: list[Change]) -> None:
        if not changes:
            return
        embeddings = np.stack([change.embedding for change in changes if change.embedding is not None])
        self._flat.add(np.ascontiguousarray(embeddings, np.float32))
        faces = np.array([change.face for change in changes], np.int64)
        people = np.array([change.person for change in changes], np.int64)
        self._faces = np.concatenate([self._faces, faces])
        self._people = np.concatenate([self._people, people])
        self._alive = np.concatenate([self._alive, np.ones(len(changes), bool)])

    def _remove(self, gone: NDArray[np.int64]) -> None:
        rows = np.flatnonzero(np.isin(self._faces, gone, assume_unique=True))
        self._alive[rows] = False
        self._embeddings()[rows] = 0
        dead = len(self._alive) - len(self)
        if dead > max(COMPACT_ROWS, COMPACT_SHARE * len(self._alive)):
            self._compact()

    def _compact(self) -> None:
        kept = self._embeddings()[self._alive]
        self._flat = faiss.IndexFlatIP(self.dimension)
        self._flat.add(kept)
        self._faces, self._people = self._faces[self._alive], self._people[self._alive]
        self._alive = np.ones(len(self._faces), bool)

    def _embeddings(self) -> Floats:
        """FAISS's own memory, to read and to zero."""
        values: Floats = faiss.rev_swig_ptr(self._flat.get_xb(), self._flat.ntotal * self.dimension)
        return values.reshape(-1, self.dimension)


class SharedLock:
    """Many may read at the same time, or one may write."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._readers = 0

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Together with other readers."""
        with self._condition:
            self._readers += 1
        try:
            yield
        finally:
            with self._condition:
                self._readers -= 1
                self._condition.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """With nobody else, and nobody comes in meanwhile."""
        with self._condition:
            self._condition.wait_for(lambda: self._readers == 0)
            yield
