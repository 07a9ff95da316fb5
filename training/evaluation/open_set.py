"""Open-set identification: the error rates of probes of enrolled people and of strangers."""

from dataclasses import dataclass

import numpy as np

from sameface.model.decision.calibration import Rate
from sameface.model.faces import Floats, Keys
from sameface.model.measurement.intervals import draw_people, summarize
from sameface.model.measurement.scores import Flags, LabelledEmbeddings, count_scores
from sameface.training.evaluation.verdict import is_seen, is_supported

FPIRS = (0.1, 0.01, 0.001)
LEFT_OUT = 3  # every third person who could be enrolled is left out
SEED = 1
PROBES_AT_ONCE = 1024


@dataclass(frozen=True, slots=True)
class SearchRates:
    """FNIR and FPIR at the threshold for a target FPIR."""

    target_fpir: float
    threshold: float | None  # None, as both rates, if not even one false positive is expected
    fpir: Rate | None
    fnir: Rate | None
    supported: bool  # thirty false positives or more are expected


@dataclass(frozen=True, slots=True)
class Identification:
    """The error rates of searches in a gallery of one face per person."""

    enrolled: int
    mated: int  # probes of enrolled people
    unmated: int  # probes of strangers
    first: Rate  # mated probes whose own person ranks first, at any similarity
    rows: tuple[SearchRates, ...]


def measure_identification(faces: LabelledEmbeddings) -> Identification | None:
    """Enrol two of three people with several faces by their first face, and search for all other faces."""
    enrolled = choose_enrolled(faces)
    _, first = np.unique(faces.people, return_index=True)
    in_gallery = np.zeros(len(faces.people), bool)
    in_gallery[first] = np.isin(faces.people[first], enrolled)
    mated = np.isin(faces.people, enrolled) & ~in_gallery
    unmated = ~np.isin(faces.people, enrolled)
    if not in_gallery.any() or not unmated.any():
        return None
    gallery = LabelledEmbeddings(faces.embeddings[in_gallery], faces.people[in_gallery])
    similarities, right = search(gallery, faces, mated)
    strangers, _ = search(gallery, faces, unmated)
    owners, others = faces.people[mated], faces.people[unmated]
    scores = count_scores(strangers)
    rows = []
    for target in FPIRS:
        if not is_seen(target, len(strangers)):
            rows.append(SearchRates(target, None, None, None, supported=False))
            continue
        threshold = scores.find_threshold(target)
        rows.append(
            SearchRates(
                target,
                threshold,
                measure_probes(strangers.round(6) >= threshold, others),
                measure_probes(~right | (similarities.round(6) < threshold), owners),
                is_supported(target, len(strangers)),
            )
        )
    return Identification(
        int(in_gallery.sum()),
        int(mated.sum()),
        int(unmated.sum()),
        measure_probes(right, owners),
        tuple(rows),
    )


def choose_enrolled(faces: LabelledEmbeddings) -> Keys:
    """Two of three people who have several faces, shuffled by a fixed seed."""
    people, counts = np.unique(faces.people, return_counts=True)
    several = np.random.default_rng(SEED).permutation(people[counts > 1])
    return np.asarray(several[np.arange(len(several)) % LEFT_OUT != 0])


def search(gallery: LabelledEmbeddings, faces: LabelledEmbeddings, probes: Flags) -> tuple[Floats, Flags]:
    """The highest similarity of each probe, and whether it is that of the probe's own person."""
    asked, owners = faces.embeddings[probes], faces.people[probes]
    highest, right = [], []
    for start in range(0, len(asked), PROBES_AT_ONCE):
        similarities = asked[start : start + PROBES_AT_ONCE] @ gallery.embeddings.T
        places = similarities.argmax(1)
        highest.append(similarities[np.arange(len(places)), places])
        right.append(gallery.people[places] == owners[start : start + PROBES_AT_ONCE])
    return np.concatenate(highest), np.concatenate(right)


def measure_probes(marked: Flags, owners: Keys) -> Rate:
    """The share of probes that are marked; the bootstrap draws people with all their probes."""
    _, people = np.unique(owners, return_inverse=True)
    weights = draw_people(int(people.max()) + 1)
    errors = np.bincount(people, marked)
    cases = np.bincount(people)
    with np.errstate(invalid="ignore"):
        drawn = (weights @ errors) / (weights @ cases)
    return summarize(int(marked.sum()), len(marked), drawn)
