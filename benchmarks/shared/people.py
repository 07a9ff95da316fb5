"""Generated people, the same in every run."""

from collections.abc import Iterator

import numpy as np

from sameface.model.faces import Floats

FACES_EACH = 5
SPREAD = 0.06  # per dimension: two faces of a person have the similarity 0.68, as real ones do
PEOPLE_AT_ONCE = 1_000


class People:
    """`count` people, each a centre around which their faces are drawn."""

    def __init__(self, count: int, dimension: int) -> None:
        self.random = np.random.default_rng(7)
        self.dimension = dimension
        self.centres = self.invent(count)

    def invent(self, count: int) -> Floats:
        """`count` new people: random embeddings of length 1."""
        return unit(self.random.standard_normal((count, self.dimension), np.float32))

    def photograph(self, people: Floats) -> Floats:
        """A new face of each of `people`: the centre with noise, at length 1."""
        return unit(people + SPREAD * self.random.standard_normal(people.shape, np.float32))

    def blocks(self) -> Iterator[tuple[int, Floats]]:
        """Yield blocks of people: the number of the first, and their faces (people, faces, dimension)."""
        for first in range(0, len(self.centres), PEOPLE_AT_ONCE):
            some = self.centres[first : first + PEOPLE_AT_ONCE, None]
            yield first, self.photograph(np.repeat(some, FACES_EACH, axis=1))

    def probes(self, count: int) -> tuple[Floats, list[str | None]]:
        """`count` probes, and the id of the person in each; every second probe is unmated and has None."""
        who = self.random.integers(0, len(self.centres), count)
        strangers = self.invent(count)
        mated = np.arange(count) % 2 == 0
        embeddings = np.where(mated[:, None], self.photograph(self.centres[who]), strangers)
        return embeddings, [f"p{person}" if mate else None for person, mate in zip(who, mated, strict=True)]


def unit(values: Floats) -> Floats:
    """Scale embeddings to length 1."""
    scaled: Floats = values / np.linalg.norm(values, axis=-1, keepdims=True)
    return scaled
