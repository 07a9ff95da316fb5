"""The unit mean embedding of every person of an index."""

import numpy as np

from sameface.model.faces import Keys
from sameface.model.gallery.index.embedding_rows import EmbeddingRows
from sameface.model.store.records import FaceBlock


class PersonMeans:
    """One row per person, with the unit mean of the person's embeddings; without a face it is dead.

    A row's face is the first of the person's faces, to find the person by.
    """

    def __init__(self, columns: EmbeddingRows) -> None:
        living = np.flatnonzero(columns.alive)
        people, first = np.unique(columns.people[living], return_index=True)
        embeddings = np.zeros((len(people), columns.dimension), np.float32)
        for rows in columns.blocks(0, columns.count):
            places = np.searchsorted(people, columns.people[rows])
            known = columns.alive[rows]
            np.add.at(embeddings, places[known], columns.embeddings[rows][known])
        embeddings /= np.maximum(np.linalg.norm(embeddings, axis=1, keepdims=True), 1e-12)
        self.rows = EmbeddingRows(columns.dimension)
        self.rows.append(FaceBlock(columns.faces[living[first]], people, embeddings))

    def renew(self, people: Keys, columns: EmbeddingRows) -> bool:
        """Recompute the means of `people` (ascending keys); False if one who is not new has no row."""
        last = self.rows.people[-1] if self.rows.count else 0
        known, new = people[people <= last], people[people > last]  # keys only grow: new people come last
        if not np.array_equal(self.rows.people[np.searchsorted(self.rows.people, known)], known):
            return False
        self.rows.append(FaceBlock(new, new, np.zeros((len(new), columns.dimension), np.float32)))
        for person, place in zip(people, np.searchsorted(self.rows.people, people), strict=True):
            rows = np.flatnonzero((columns.people == person) & columns.alive)
            total = columns.embeddings[rows].sum(axis=0)
            self.rows.embeddings[place] = total / max(float(np.linalg.norm(total)), 1e-12)
            self.rows.revive(place, columns.faces[rows[0]] if len(rows) else None)
        return True
