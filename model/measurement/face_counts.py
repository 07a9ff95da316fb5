"""How many comparisons with a single face one with a person of several faces is worth."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sameface.model.faces import Floats
from sameface.model.measurement.scores import LabelledEmbeddings

FACES = (2, 4, 8)  # per person, as far as there are people who have so many
LEAST_PEOPLE = 30
MOST_PEOPLE = 1000
MOST_PROBES = 5000
FALSE_MATCHES = 100  # of single faces, at the threshold where fusions are compared with them


@dataclass(frozen=True, slots=True)
class Worth:
    """By faces per person, how many comparisons with single faces a comparison is worth.

    It rises from 1 for a single face, since the best of several faces of a stranger is more similar than one.
    Beyond what was measured it grows like the number of faces, which it can never exceed.
    """

    faces: tuple[float, ...] = (1.0,)
    comparisons: tuple[float, ...] = (1.0,)

    def of(self, faces: float) -> float:
        """A comparison with a person of so many faces."""
        beyond = max(1.0, faces / self.faces[-1])
        return float(np.interp(faces, self.faces, self.comparisons)) * beyond


def measure_fusions(faces: LabelledEmbeddings) -> Mapping[str, Worth]:
    """The worth of people's best face and of their mean, where enough people have several faces."""
    _, first, counts = np.unique(faces.people, return_index=True, return_counts=True)
    probes = first[:MOST_PROBES]
    measured = {"max": Worth(), "mean": Worth()}
    for number in FACES:
        people = np.unique(faces.people)[counts >= number][:MOST_PEOPLE]
        if len(people) < LEAST_PEOPLE:
            break
        for fusion, worth in compare_fusions(faces, people, probes, number).items():
            known = measured[fusion]
            risen = min(max(worth, known.comparisons[-1]), float(number))
            measured[fusion] = Worth((*known.faces, float(number)), (*known.comparisons, risen))
    return measured


def compare_fusions(
    faces: LabelledEmbeddings, people: NDArray[np.int64], probes: NDArray[np.int64], number: int
) -> dict[str, float]:
    """False matches of people with so many faces, relative to those of their single faces."""
    enrolled = np.stack([faces.embeddings[faces.people == person][:number] for person in people])
    means = enrolled.mean(1)
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    asked = faces.embeddings[probes]
    strangers = faces.people[probes, None] != people[None]  # (probes, people)

    def impostors(references: Floats) -> Floats:
        return np.asarray((asked @ references.T)[strangers])

    singles = [impostors(enrolled[:, face]) for face in range(number)]
    apart = np.sort(np.concatenate(singles))
    threshold = apart[-min(FALSE_MATCHES * number, len(apart))]
    single = float(np.mean(apart >= threshold))
    best = np.maximum.reduce(singles)
    return {
        "max": float(np.mean(best >= threshold)) / single,
        "mean": float(np.mean(impostors(means) >= threshold)) / single,
    }
