"""A person with k enrolled faces raises the false match rate like n single comparisons; this measures n for
`max` and `mean`."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from sameface.model.decision.calibration import SingleComparisons
from sameface.model.faces import Floats
from sameface.model.measurement.scores import LabelledEmbeddings

FACES = (2, 4, 8)  # per person, as far as `LEAST_PEOPLE` people have them
LEAST_PEOPLE = 30
MOST_PEOPLE = 1000
MOST_PROBES = 5000
FALSE_MATCHES = 100  # per enrolled face, at the threshold where fusions and single faces are compared


def measure_fusions(faces: LabelledEmbeddings) -> Mapping[str, SingleComparisons]:
    """By fusion, the single comparisons of people with 1, 2, 4 and 8 faces, where enough people have them."""
    _, first, counts = np.unique(faces.people, return_index=True, return_counts=True)
    probes = first[:MOST_PROBES]
    measured = {"max": SingleComparisons(), "mean": SingleComparisons()}
    for number in FACES:
        people = np.unique(faces.people)[counts >= number][:MOST_PEOPLE]
        if len(people) < LEAST_PEOPLE:
            break
        for fusion, comparisons in compare_fusions(faces, people, probes, number).items():
            known = measured[fusion]
            risen = min(max(comparisons, known.comparisons[-1]), float(number))
            measured[fusion] = SingleComparisons((*known.faces, float(number)), (*known.comparisons, risen))
    return measured


def compare_fusions(
    faces: LabelledEmbeddings, people: NDArray[np.int64], probes: NDArray[np.int64], number: int
) -> dict[str, float]:
    """By fusion, the false match rate of people with `number` faces as a multiple of that of single faces."""
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
