"""The unit mean embedding of every person of an index."""

import numpy as np

from model.columns import Columns
from model.faces import Floats, Keys


class Means:
    """One row per person, kept up to date person by person; a person without faces has a mean of zero."""

    def __init__(self, columns: Columns) -> None:
        alive = np.flatnonzero(columns.alive)
        self.people, first = np.unique(columns.people[alive], return_index=True)  # ascending
        self.faces: Keys = columns.faces[alive[first]]  # by which each person is named
        self.embeddings: Floats = np.zeros((len(self.people), columns.dimension), np.float32)
        of_person = np.searchsorted(self.people, columns.people)
        for rows in columns.blocks(0, len(columns)):
            living = np.flatnonzero(columns.alive[rows]) + rows.start
            np.add.at(self.embeddings, of_person[living], columns.embeddings[living])
        self.embeddings /= np.maximum(np.linalg.norm(self.embeddings, axis=1, keepdims=True), 1e-12)

    def renew(self, people: Keys, columns: Columns) -> None:
        """Compute the means of some people anew."""
        self._make_room_for(people)
        for person, place in zip(people, np.searchsorted(self.people, people), strict=True):
            rows = np.flatnonzero((columns.people == person) & columns.alive)
            total = columns.embeddings[rows].sum(axis=0)
            self.embeddings[place] = total / max(float(np.linalg.norm(total)), 1e-12)
            self.faces[place] = columns.faces[rows[0]] if len(rows) else -1

    def _make_room_for(self, people: Keys) -> None:
        new = np.setdiff1d(people, self.people)
        if len(new):
            places = np.searchsorted(self.people, new)
            self.people = np.insert(self.people, places, new)
            self.faces = np.insert(self.faces, places, -1)
            self.embeddings = np.insert(self.embeddings, places, 0, axis=0)
