"""Warnings about newcomers: a group photo, one seen before, a face like another's or unlike the own ones."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from sameface.model.decision.similarity import DIGITS
from sameface.model.decision.thresholds import EXTRAPOLATING
from sameface.model.errors import IndexRefused, IndexUnavailable, NotCalibrated
from sameface.model.faces import Floats, Value
from sameface.model.gallery.candidates import Candidate
from sameface.model.gallery.gallery import Gallery
from sameface.model.store.records import Collection, NewFace, NewPerson

CANDIDATES = 2  # per face: the person itself, if enrolled before, and the most similar other person


@dataclass(frozen=True, slots=True)
class EnrollWarning(Value):
    """Something odd about a face that was enrolled all the same."""

    code: str  # the names of the HTTP API
    face_id: str
    person_id: str | None = None
    similarity: float | None = None
    faces_found: int | None = None


Entry: TypeAlias = tuple[str, NewFace]  # the id of a newcomer, and one of the newcomer's faces


def find_warnings(
    gallery: Gallery, collection: Collection, newcomers: Sequence[NewPerson]
) -> list[list[EnrollWarning]]:
    """The warnings about each newcomer, who is compared with the collection and with the other newcomers."""
    entries = [(newcomer.person_id, face) for newcomer in newcomers for face in newcomer.faces]
    by_face = zip(
        [warn_of_several(face) + warn_of_normalised(face) for _, face in entries],
        warn_of_same_photos(gallery, collection, entries),
        warn_of_likenesses(gallery, collection, entries),
        strict=True,
    )
    return [
        [warning for _ in newcomer.faces for kind in next(by_face) for warning in kind]
        for newcomer in newcomers
    ]


def warn_of_several(face: NewFace) -> list[EnrollWarning]:
    """A warning if the photo shows more people than the one who was taken from it."""
    if face.faces_found == 1:
        return []
    return [EnrollWarning("several_faces", face.face_id, faces_found=face.faces_found)]


def warn_of_normalised(face: NewFace) -> list[EnrollWarning]:
    """A warning if the embedding was sent at another length than 1."""
    return [EnrollWarning("embedding_normalised", face.face_id)] if face.normalised else []


def warn_of_same_photos(
    gallery: Gallery, collection: Collection, entries: Sequence[Entry]
) -> list[list[EnrollWarning]]:
    """For each face a warning if its photo was enrolled before, in the collection or in an earlier entry."""
    photos = [face.photo for _, face in entries if face.photo]
    owners = gallery.find_photos(collection, photos)
    seen = {photo: people[0] for photo, people in owners.items()}
    warnings: list[list[EnrollWarning]] = []
    for person_id, face in entries:
        owner = seen.get(face.photo or "")
        warnings.append([EnrollWarning("same_photo", face.face_id, owner)] if owner else [])
        if face.photo:
            seen.setdefault(face.photo, person_id)
    return warnings


def warn_of_likenesses(
    gallery: Gallery, collection: Collection, entries: Sequence[Entry]
) -> list[list[EnrollWarning]]:
    """For each face warnings if it resembles other people, or none of its own person's other faces."""
    try:
        same = gallery.thresholds.for_pair(EXTRAPOLATING, calibration=collection.calibration).value
        alike = gallery.choose_threshold(collection, EXTRAPOLATING).value
    except NotCalibrated:
        return [[] for _ in entries]
    people = np.array([person_id for person_id, _ in entries])
    embeddings = np.stack([face.embedding for _, face in entries])
    own = gallery.get_own_embeddings(collection, sorted(set(people.tolist())))
    found = find_likely(gallery, collection, embeddings)
    warnings = []
    for place, (person_id, face) in enumerate(entries):
        similarities, mine = embeddings @ face.embedding, people == person_id
        alike_newcomers = np.flatnonzero(~mine & (similarities >= alike))
        others = closest_by_person(
            *((str(people[other]), float(similarities[other])) for other in alike_newcomers),
            *(
                (hit.person_id, hit.similarity)
                for hit in found[place]
                if hit.person_id != person_id and hit.similarity >= alike
            ),
        )
        mine[place] = False
        closest = [*similarities[mine], *(values @ face.embedding for values in own[person_id].values())]
        warnings.append(warn_of_others(face, others) + warn_of_own(face, max(closest, default=1.0), same))
    return warnings


def find_likely(
    gallery: Gallery, collection: Collection, embeddings: Floats
) -> Sequence[Sequence[Candidate]]:
    """For each embedding the people it may show; none where this server or its index cannot search."""
    if gallery.searches:
        with suppress(IndexUnavailable, IndexRefused):
            return gallery.search(collection, embeddings, CANDIDATES).by_probe()
    return [()] * len(embeddings)


def closest_by_person(*likenesses: tuple[str, float]) -> dict[str, float]:
    """The largest similarity of each person id, in the order in which the ids first come."""
    closest: dict[str, float] = {}
    for person_id, similarity in likenesses:
        closest[person_id] = max(similarity, closest.get(person_id, similarity))
    return closest


def warn_of_others(face: NewFace, others: dict[str, float]) -> list[EnrollWarning]:
    """A warning for each other person, by id and similarity, whom the face resembles."""
    return [
        EnrollWarning("looks_like_another_person", face.face_id, person_id, round(similarity, DIGITS))
        for person_id, similarity in others.items()
    ]


def warn_of_own(face: NewFace, closest: float, threshold: float) -> list[EnrollWarning]:
    """A warning if `closest`, the similarity to the most similar of the person's own faces, is too low."""
    if closest >= threshold:
        return []
    return [EnrollWarning("unlike_own_faces", face.face_id, similarity=round(float(closest), DIGITS))]
