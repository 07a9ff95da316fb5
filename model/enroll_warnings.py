"""What is odd about newcomers: a photo seen before, a face like another's or unlike the person's own."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sameface.model.decision.thresholds import AT_ANY_SIZE
from sameface.model.errors import NotCalibrated
from sameface.model.faces import Embedding
from sameface.model.gallery.gallery import Gallery
from sameface.model.store.records import Collection, NewFace, NewPerson

Warnings = list[dict[str, Any]]


def find_oddities(gallery: Gallery, collection: Collection, newcomers: Sequence[NewPerson]) -> list[Warnings]:
    """Warnings for each newcomer, who is compared with the gallery and with the other newcomers."""
    entries = [(newcomer.person_id, face) for newcomer in newcomers for face in newcomer.faces]
    photos = find_same_photos(gallery, collection, entries)
    likenesses = find_likenesses(gallery, collection, entries)
    each = (
        find_normalised(face) + same_photo + likeness
        for (_, face), same_photo, likeness in zip(entries, photos, likenesses, strict=True)
    )
    return [[warning for _ in newcomer.faces for warning in next(each)] for newcomer in newcomers]


def find_normalised(face: NewFace) -> Warnings:
    """An embedding that was brought at another length than 1."""
    return [{"code": "embedding_normalised", "face_id": face.face_id}] if face.normalised else []


def find_same_photos(
    gallery: Gallery, collection: Collection, entries: Sequence[tuple[str, NewFace]]
) -> list[Warnings]:
    """For each face, whether its very photo was enrolled before."""
    photos = [face.photo for _, face in entries if face.photo]
    found = gallery.store.people.owners_of_photos(collection, photos)
    seen = {photo: people[0] for photo, people in found.items()}
    warnings: list[Warnings] = []
    for person_id, face in entries:
        again = [{"code": "same_photo", "face_id": face.face_id, "person_id": seen.get(face.photo or "")}]
        warnings.append(again if face.photo in seen else [])
        if face.photo:
            seen.setdefault(face.photo, person_id)
    return warnings


def find_likenesses(
    gallery: Gallery, collection: Collection, entries: Sequence[tuple[str, NewFace]]
) -> list[Warnings]:
    """For each face, the others that it resembles and the own ones that it does not, by one search."""
    now = gallery.get_collection(collection.name)
    try:
        same = gallery.thresholds.for_pair(AT_ANY_SIZE, calibration=now.calibration).value
        alike = gallery.choose_threshold(now, AT_ANY_SIZE).value
    except NotCalibrated:
        return [[] for _ in entries]
    people = np.array([person_id for person_id, _ in entries])
    embeddings = np.stack([face.embedding for _, face in entries])
    known = gallery.store.people.embeddings_of(collection, sorted(set(people.tolist())))
    probes = [Embedding(values, gallery.bundle.identity) for values in embeddings]
    found = gallery.search(now, probes, 2)
    warnings = []
    for place, (person_id, face) in enumerate(entries):
        similarities, own = embeddings @ face.embedding, people == person_id
        others = closest_by_person(
            *((str(people[other]), float(similarities[other])) for other in np.flatnonzero(~own)),
            *((hit.person_id, hit.similarity) for hit in found[place] if hit.person_id != person_id),
        )
        own[place] = False
        closest = [*similarities[own], *(values @ face.embedding for values in known[person_id].values())]
        warnings.append(
            describe_others(face, {who: likeness for who, likeness in others.items() if likeness >= alike})
            + describe_own(face, max(closest, default=1.0), same)
        )
    return warnings


def closest_by_person(*likenesses: tuple[str, float]) -> dict[str, float]:
    """The largest similarity of each person id, in the order in which the ids first come."""
    closest: dict[str, float] = {}
    for person_id, similarity in likenesses:
        closest[person_id] = max(similarity, closest.get(person_id, similarity))
    return closest


def describe_others(face: NewFace, others: dict[str, float]) -> Warnings:
    """Of one face, who else it looks like."""
    return [
        {
            "code": "looks_like_another_person",
            "face_id": face.face_id,
            "person_id": person_id,
            "similarity": round(float(similarity), 6),
        }
        for person_id, similarity in others.items()
    ]


def describe_own(face: NewFace, closest: float, threshold: float) -> Warnings:
    """Of one face, whether it looks like none of the person's own."""
    similarity = round(float(closest), 6)
    odd = closest < threshold
    return [{"code": "unlike_own_faces", "face_id": face.face_id, "similarity": similarity}] if odd else []
