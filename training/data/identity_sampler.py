"""Batches of P people with K images each, which pair and triplet losses need."""

from collections.abc import Iterator, Sequence
from itertools import cycle, islice

import numpy as np
from torch.utils.data import Sampler

from sameface.training.errors import RecipeRefused


class IdentitySampler(Sampler[list[int]]):
    """Batches of indices: `people` different people with `images` images each.

    People occur equally often, however many images they have: they are dealt from a shuffled deck, which is
    shuffled anew when its rest cannot fill a batch. The images of a person with fewer than `images` are
    repeated; a person with a single image has no genuine pair and is left out. An epoch has as many batches
    as the remaining images fill, at least one, and follows from `seed` and the epoch's number alone.
    """

    def __init__(self, labels: Sequence[int], *, people: int = 32, images: int = 4, seed: int = 0) -> None:
        if people < 2 or images < 2:
            raise RecipeRefused(
                f"a batch for pairs needs two people with two images, not {people} with {images}"
            )
        self.people, self.images, self.seed, self.epoch = people, images, seed, 0
        self.albums = collect_albums(labels)
        if len(self.albums) < people:
            raise RecipeRefused(
                f"a batch asks for {people} people, and {len(self.albums)} have two images or more"
            )

    def __len__(self) -> int:
        return max(1, sum(map(len, self.albums)) // (self.people * self.images))

    def __iter__(self) -> Iterator[list[int]]:
        random = np.random.default_rng((self.seed, self.epoch))
        deck: list[int] = []
        for _ in range(len(self)):
            if len(deck) < self.people:
                deck = random.permutation(len(self.albums)).tolist()
            dealt, deck = deck[: self.people], deck[self.people :]
            yield [index for person in dealt for index in self.draw(person, random)]

    def set_epoch(self, epoch: int) -> None:
        """Shuffle by `epoch`; the same epoch gives the same batches."""
        self.epoch = epoch

    def draw(self, person: int, random: np.random.Generator) -> list[int]:
        """`images` indices of one person's images, repeated only if the person has fewer."""
        shuffled: list[int] = random.permutation(self.albums[person]).tolist()
        return list(islice(cycle(shuffled), self.images))


def collect_albums(labels: Sequence[int]) -> list[np.ndarray]:
    """The image indices of each person who has two images or more, ordered by label."""
    given = np.asarray(labels)
    order = np.argsort(given, kind="stable")
    starts = np.flatnonzero(np.diff(given[order])) + 1
    return [album for album in np.split(order, starts) if len(album) > 1]
