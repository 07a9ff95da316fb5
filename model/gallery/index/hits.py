"""What a search in an index finds, as arrays: no object per probe, nor per person found."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sameface.model.faces import Floats, Keys


@dataclass(frozen=True, slots=True, eq=False)
class Hits:
    """For each probe (row) the most similar people, best first; -1 fills the places that are left."""

    people: Keys  # (probes, limit)
    faces: Keys  # (probes, limit), by which the people were found
    similarities: Floats  # (probes, limit)

    @classmethod
    def none(cls, probes: int, limit: int) -> "Hits":
        """Hits in which nobody is found."""
        shape = (probes, limit)
        return cls(np.full(shape, -1, np.int64), np.full(shape, -1, np.int64), np.zeros(shape, np.float32))

    def put(self, probes: NDArray[np.intp], found: "Hits") -> None:
        """Write the rows of `found`, which may be shorter, over the beginnings of the rows of `probes`."""
        places = (probes, slice(found.people.shape[1]))
        self.people[places], self.faces[places] = found.people, found.faces
        self.similarities[places] = found.similarities


def first_of_each(people: Keys) -> NDArray[np.bool_]:
    """Marks the first occurrence of each person in a row; -1, which is nobody, is never marked."""
    order = np.argsort(people, axis=1, kind="stable")
    grouped = np.take_along_axis(people, order, 1)
    first = grouped >= 0
    first[:, 1:] &= grouped[:, 1:] != grouped[:, :-1]
    firsts = np.empty_like(first)
    np.put_along_axis(firsts, order, first, 1)
    return firsts


def best_of_each(people: Keys, faces: Keys, similarities: Floats, limit: int) -> Hits:
    """For each probe (row) the first `limit` different people among its candidates, each with the best face.

    All are (probes, candidates), in falling similarity; `faces` may be rows of an index, and -1 is nobody.
    """
    firsts = first_of_each(people)
    best = np.argsort(~firsts, axis=1, kind="stable")[:, :limit]  # firsts in their order, then the rest
    found = np.take_along_axis(firsts, best, 1)
    return Hits(
        np.where(found, np.take_along_axis(people, best, 1), -1),
        np.where(found, np.take_along_axis(faces, best, 1), -1),
        np.take_along_axis(similarities, best, 1),
    )
