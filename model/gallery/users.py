"""Users and their faces, as clients of Rekognition know them: a user is a person, called by an id.

A face without a user is a person of its own. It is given to a user and taken away again with its own id.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from sameface.model.decision.confidence import measure_confidence
from sameface.model.decision.similarity import DIGITS
from sameface.model.decision.thresholds import EXTRAPOLATING
from sameface.model.errors import IdempotencyKeyReused, PersonNotFound
from sameface.model.faces import Embedding
from sameface.model.gallery.candidates import Candidate
from sameface.model.gallery.gallery import Gallery
from sameface.model.store.people.person_ids import make_person_id
from sameface.model.store.records import Collection, KnownFace, NewPerson, Person, RememberedResponse, User

USER_ID = re.compile(r"[a-zA-Z0-9_.:-]{1,128}")
AT_TARGET = 0.8  # the confidence at the target rate: what Rekognition's clients take for the border


class Refusal(StrEnum):
    """Why a face is not given to a user, taken away or deleted."""

    NOT_FOUND = "FACE_NOT_FOUND"
    OF_ANOTHER = "ASSOCIATED_TO_A_DIFFERENT_USER"
    UNLIKE = "LOW_MATCH_CONFIDENCE"
    OF_A_USER = "ASSOCIATED_TO_AN_EXISTING_USER"


@dataclass(frozen=True, slots=True)
class RefusedFace:
    """A face that was not moved or deleted: the reason, its user, and the confidence if that was too low."""

    face_id: str
    reason: Refusal
    user_id: str | None = None
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class MovedFaces:
    """The faces that a user has got or lost, those that were refused, and how many the user has now."""

    moved: list[str]
    refused: list[RefusedFace]
    owned: int


def name_user(person_id: str, name: str | None) -> str:
    """The id of a user: what the client has called it, or the person's id."""
    called = name is not None and USER_ID.fullmatch(name) and make_person_id(name) == person_id
    return name if called and name else person_id


def create_user(gallery: Gallery, collection: Collection, user_id: str, token: str | None) -> None:
    """Enrol a user without a face; raises if there is one, unless the same `token` has made it."""
    person_id = make_person_id(user_id)
    newcomer = NewPerson(person_id, [], None if person_id == user_id else user_id)
    said = [RememberedResponse(f"user:{token}", user_id, {"person_id": person_id})] if token else []
    earlier = gallery.enroll(collection, [newcomer], said)
    if any(response.request_sha256 != user_id for response in earlier.values()):
        raise IdempotencyKeyReused("This ClientRequestToken was sent with another UserId before.")


def find_user(gallery: Gallery, collection: Collection, user_id: str) -> Person:
    """The user with this id; raises if it is the id of a face without a user."""
    person = gallery.get_person(collection, make_person_id(user_id))
    if any(face.face_id == person.person_id for face in person.faces):
        raise PersonNotFound(f"There is no user {user_id!r} in {collection.name!r}.")
    return person


def delete_user(gallery: Gallery, collection: Collection, user_id: str) -> None:
    """Delete a user, whose faces stay, without a user."""
    gallery.store.wholesale.part(collection, find_user(gallery, collection, user_id).person_id)
    gallery.indexes.keep_forgetting()


def list_users(gallery: Gallery, collection: Collection, limit: int, after: str) -> list[User]:
    """Up to `limit` users, from the first whose person's id is greater than `after`."""
    return gallery.store.users.page(collection, limit, after)


def count_users(gallery: Gallery, collection: Collection) -> int:
    """How many users a collection has."""
    return gallery.store.users.count(collection)


def list_faces(
    gallery: Gallery,
    collection: Collection,
    limit: int,
    after: int,
    face_ids: Sequence[str] | None,
    user_id: str | None,
) -> list[KnownFace]:
    """Up to `limit` faces whose keys are greater than `after`, of these ids or of one user."""
    person_id = find_user(gallery, collection, user_id).person_id if user_id is not None else None
    return gallery.store.users.faces(collection, limit, after, face_ids, person_id)


def associate(
    gallery: Gallery, collection: Collection, user_id: str, face_ids: Sequence[str], min_confidence: float
) -> MovedFaces:
    """Give faces to a user; those that the user has already count as given.

    A face must be as similar to one of the user's as `min_confidence` says, or to the first if there is none.
    """
    user = find_user(gallery, collection, user_id)
    free, given, refused = [], [], []
    known = {face.face_id: face for face in gallery.store.users.faces(collection, face_ids=face_ids)}
    alone = [known[face_id] for face_id in face_ids if face_id in known and known[face_id].is_alone]
    confidences = compare_with_user(gallery, collection, user, alone)
    for face_id in dict.fromkeys(face_ids):
        face = known.get(face_id)
        if face is None:
            refused.append(RefusedFace(face_id, Refusal.NOT_FOUND))
        elif face.person_id == user.person_id:
            given.append(face_id)
        elif not face.is_alone:
            refused.append(RefusedFace(face_id, Refusal.OF_ANOTHER, name_user(face.person_id, face.name)))
        elif confidences[face_id] < min_confidence:
            refused.append(RefusedFace(face_id, Refusal.UNLIKE, None, confidences[face_id]))
        else:
            free.append(face_id)
    if free:
        gallery.store.wholesale.merge(collection, free, user.person_id)
        gallery.indexes.keep_forgetting()
    return MovedFaces(given + free, refused, len(user.faces) + len(free))


def compare_with_user(
    gallery: Gallery, collection: Collection, user: Person, faces: Sequence[KnownFace]
) -> dict[str, float]:
    """By face id: the confidence that a face is the user's; `faces[0]` stands in for a user without faces."""
    if not faces:
        return {}
    threshold = gallery.thresholds.for_pair(EXTRAPOLATING, calibration=collection.calibration)
    found = gallery.get_own_embeddings(collection, [user.person_id, *(face.person_id for face in faces)])
    references = found[user.person_id] or found[faces[0].person_id]
    own = np.stack(list(references.values()))  # (faces, dimension)
    return {
        face.face_id: measure_confidence(
            threshold, float((own @ found[face.person_id][face.face_id]).max()), AT_TARGET
        )
        for face in faces
    }


def disassociate(
    gallery: Gallery, collection: Collection, user_id: str, face_ids: Sequence[str]
) -> MovedFaces:
    """Take faces from a user; each is without a user then."""
    user = find_user(gallery, collection, user_id)
    known = {face.face_id: face for face in gallery.store.users.faces(collection, face_ids=face_ids)}
    taken = [face_id for face_id, face in known.items() if face.person_id == user.person_id]
    refused = [
        RefusedFace(face_id, Refusal.OF_ANOTHER, user_of(known[face_id]))
        if face_id in known
        else RefusedFace(face_id, Refusal.NOT_FOUND)
        for face_id in dict.fromkeys(face_ids)
        if face_id not in taken
    ]
    if taken:
        gallery.store.wholesale.part(collection, user.person_id, taken)
        gallery.indexes.keep_forgetting()
    return MovedFaces(taken, refused, len(user.faces) - len(taken))


def user_of(face: KnownFace) -> str | None:
    """The id of the user who has a face; None if nobody has it."""
    return None if face.is_alone else name_user(face.person_id, face.name)


def delete_faces(
    gallery: Gallery, collection: Collection, face_ids: Sequence[str]
) -> tuple[list[str], list[RefusedFace]]:
    """Delete faces without a user; returns the deleted ids, and the faces that were refused."""
    known = {face.face_id: face for face in gallery.store.users.faces(collection, face_ids=face_ids)}
    gone, refused = [], []
    for face_id in dict.fromkeys(face_ids):
        face = known.get(face_id)
        if face is None:
            refused.append(RefusedFace(face_id, Refusal.NOT_FOUND))
        elif not face.is_alone:
            refused.append(RefusedFace(face_id, Refusal.OF_A_USER, name_user(face.person_id, face.name)))
        else:
            gone.append(face_id)
    if gone:
        gallery.store.wholesale.delete(collection, gone)
        gallery.indexes.keep_forgetting()
    return gone, refused


def rank_faces(
    gallery: Gallery, collection: Collection, probe: Embedding, candidates: Sequence[Candidate]
) -> list[tuple[KnownFace, float]]:
    """Every face of the candidates with its similarity to the probe, most similar first.

    A search finds each person by the best face alone, so the other faces are read and compared here.
    """
    similarities = {candidate.face_id: candidate.similarity for candidate in candidates}
    users = [each.person_id for each in candidates if each.person_id != each.face_id]
    for owned in gallery.get_own_embeddings(collection, users).values() if users else ():
        for face_id, values in owned.items():
            similarities.setdefault(face_id, round(float(probe.values @ values), DIGITS))
    known = gallery.store.users.faces(collection, face_ids=list(similarities))
    return sorted(((face, similarities[face.face_id]) for face in known), key=lambda pair: -pair[1])
