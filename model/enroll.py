"""Enrols people from photos or embeddings: enrolled faces, rejected photos, and warnings are returned."""

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from sameface.model.enroll_warnings import EnrollWarning, find_warnings
from sameface.model.errors import IdempotencyKeyReused, InvalidArgument, PersonNotFound, SamefaceError
from sameface.model.faces import EmbeddedFace, Embedding, Photo, Value
from sameface.model.gallery.gallery import Gallery
from sameface.model.photo.image import encode_png, hash_photo
from sameface.model.pipeline import Pipeline
from sameface.model.store.records import Collection, NewFace, NewPerson, RememberedResponse, draw_id


@dataclass(frozen=True, slots=True, kw_only=True)
class EnrollRequest:
    """A person to enrol into a collection; retries with the same idempotency key enrol nobody twice."""

    collection: str | Collection  # by name, or as the request has read it
    person_id: str | None = None  # None: a random id
    face_id: str | None = None  # of the one photo; None: a random id for each
    name: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    photos: Sequence[Photo] = ()
    embeddings: Sequence[Embedding] = ()
    may_exist: bool = False
    must_exist: bool = False
    faces: str = "prominent"
    min_quality: float = 0.0
    min_score: float = 0.0  # of a face: what the detector is less sure of is none
    idempotency_key: str | None = None

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of the request, to tell a retry from another request with the same key."""
        who = [self.person_id, self.name, self.metadata, self.may_exist, self.must_exist]
        digest = hashlib.sha256(json.dumps([*who, self.faces, self.min_quality], sort_keys=True).encode())
        for photo in self.photos:
            digest.update(bytes.fromhex(hash_photo(photo)))
        for embedding in self.embeddings:
            digest.update(hashlib.sha256(embedding.values.tobytes()).digest())
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class EnrolledFace(Value):
    """An enrolled face; `image` is the index of its photo or embedding in the request, photos first."""

    face_id: str
    image: int
    quality: float | None


@dataclass(frozen=True, slots=True)
class Rejection(Value):
    """A rejected photo: its index in the request, and the code and the sentence of the error."""

    image: int
    code: str
    detail: str


@dataclass(frozen=True, slots=True)
class Enrollment(Value):
    """The answer of `enroll`: the person's id, the enrolled faces, the rejected photos and the warnings."""

    person_id: str
    faces: list[EnrolledFace]
    rejected: list[Rejection]
    warnings: list[EnrollWarning]

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "Enrollment":
        """The enrolment that `to_dict()` wrote."""
        return cls(
            fields["person_id"],
            [EnrolledFace(**face) for face in fields["faces"]],
            [Rejection(**rejection) for rejection in fields["rejected"]],
            [EnrollWarning(**warning) for warning in fields["warnings"]],
        )


FaceOrReason: TypeAlias = NewFace | SamefaceError  # of one photo: the face to enrol, or why it is rejected
Outcome: TypeAlias = Enrollment | SamefaceError  # of one request: the answer, or why it failed
PhotoOfRequest: TypeAlias = tuple[EnrollRequest, Photo]
EmbedAll: TypeAlias = Callable[
    [Callable[[PhotoOfRequest], FaceOrReason], Sequence[PhotoOfRequest]], Awaitable[list[FaceOrReason]]
]


async def enroll(pipeline: Pipeline, gallery: Gallery, request: EnrollRequest) -> Enrollment:
    """Enrol one person; unfit photos are rejected, and if all are, the first photo's error is raised.

    A retry with the same idempotency key gets the first answer.
    """
    if not request.photos and not request.embeddings:
        raise InvalidArgument("Nobody is enrolled by name alone: send photos or embeddings.")
    [outcome] = await enroll_all(pipeline, gallery, request.collection, [request], pipeline.queue.run_all)
    if isinstance(outcome, SamefaceError):
        raise outcome
    return outcome


async def enroll_many(
    pipeline: Pipeline,
    gallery: Gallery,
    collection: str | Collection,
    requests: Sequence[EnrollRequest | SamefaceError],
) -> list[Outcome]:
    """Enrol many people in one transaction; their photos wait for free places in the work queue.

    Returns one outcome per request. An error among `requests` is returned in its place, and a request without
    a fit face does not fail the rest.
    """
    outcomes: dict[int, Outcome] = {
        place: request for place, request in enumerate(requests) if isinstance(request, SamefaceError)
    }
    pending = {place: request for place, request in enumerate(requests) if isinstance(request, EnrollRequest)}
    twins = set_twins_aside(pending)
    try:
        found = await enroll_all(
            pipeline, gallery, collection, list(pending.values()), pipeline.queue.run_in_turn
        )
        outcomes |= dict(zip(pending, found, strict=True))
    except SamefaceError as error:  # the transaction failed: nobody was written
        outcomes |= dict.fromkeys(pending, error)
    for place, (first, same) in twins.items():
        outcomes[place] = outcomes[first] if same else key_reused()
    return [outcomes[place] for place in range(len(requests))]


async def enroll_all(
    pipeline: Pipeline,
    gallery: Gallery,
    named: str | Collection,
    requests: Sequence[EnrollRequest],
    embed_all: EmbedAll,
) -> list[Outcome]:
    """One outcome per request: retries get the remembered response, all others are embedded and enrolled.

    `embed_all` is the work queue's `run_all` or `run_in_turn`.
    """
    gallery.writers.check_open()
    collection, earlier = await gallery.readers.run(find_earlier, gallery, named, requests)
    outcomes = {
        place: repeat_response(found, requests[place]) for place, found in enumerate(earlier) if found
    }
    pending = {place: request for place, request in enumerate(requests) if place not in outcomes}
    embedded = await embed_requests(pipeline, list(pending.values()), embed_all)
    fit: dict[int, list[FaceOrReason]] = {}
    for place, faces in zip(pending, embedded, strict=True):
        if any(isinstance(face, NewFace) for face in faces):
            fit[place] = faces
        else:
            outcomes[place] = reject_all(faces)
    if fit:
        chosen = [pending[place] for place in fit]
        written = await gallery.writers.run(write_requests, gallery, collection, chosen, list(fit.values()))
        outcomes |= dict(zip(fit, written, strict=True))
    return [outcomes[place] for place in range(len(requests))]


async def embed_requests(
    pipeline: Pipeline, requests: Sequence[EnrollRequest], embed_all: EmbedAll
) -> list[list[FaceOrReason]]:
    """For each request a face or an error per photo, then a face per embedding."""

    def embed(entry: PhotoOfRequest) -> FaceOrReason:
        request, photo = entry
        try:
            found = pipeline.embed_one_face(
                photo, request.faces, request.min_quality, name="photo", min_score=request.min_score
            )
        except SamefaceError as error:
            return error
        return to_new_face(found.faces[0], photo, request.face_id or draw_id(), found.faces_found)

    photos = [(request, photo) for request in requests for photo in request.photos]
    embedded = iter(await embed_all(embed, photos) if photos else ())
    return [
        [next(embedded) for _ in request.photos]
        + [NewFace(draw_id(), sent.values, normalised=sent.normalised) for sent in request.embeddings]
        for request in requests
    ]


def write_requests(
    gallery: Gallery,
    collection: Collection,
    requests: Sequence[EnrollRequest],
    faces: Sequence[Sequence[FaceOrReason]],
) -> list[Outcome]:
    """Enrol the faces and remember the responses for retries, in one transaction; an outcome per request."""
    newcomers = [
        NewPerson(
            request.person_id or draw_id(),
            [face for face in found if isinstance(face, NewFace)],
            request.name,
            request.metadata,
            may_exist=request.may_exist,
            must_exist=request.must_exist,
        )
        for request, found in zip(requests, faces, strict=True)
    ]
    warnings = find_warnings(gallery, collection, newcomers)
    enrolments = [describe_enrolment(*parts) for parts in zip(newcomers, faces, warnings, strict=True)]
    responses = [
        RememberedResponse(request.idempotency_key, request.fingerprint, enrolment.to_dict())
        for request, enrolment in zip(requests, enrolments, strict=True)
        if request.idempotency_key
    ]
    earlier = gallery.enroll(collection, newcomers, responses)
    return [
        repeat_response(earlier[request.idempotency_key], request)
        if request.idempotency_key in earlier
        else enrolment
        for request, enrolment in zip(requests, enrolments, strict=True)
    ]


def find_earlier(
    gallery: Gallery, named: str | Collection, requests: Sequence[EnrollRequest]
) -> tuple[Collection, list[RememberedResponse | None]]:
    """The collection, and for each request the response remembered for its idempotency key, or None."""
    collection = gallery.read_collection(named)
    keys = [request.idempotency_key for request in requests if request.idempotency_key]
    found = gallery.find_responses(collection, keys)
    return collection, [found.get(request.idempotency_key or "") for request in requests]


def repeat_response(earlier: RememberedResponse, request: EnrollRequest) -> Outcome:
    """The answer that `earlier` remembers, or an error if its key was sent with another request."""
    if earlier.request_sha256 != request.fingerprint:
        return key_reused()
    if earlier.forgotten:
        return PersonNotFound("The person who was enrolled by this request has been forgotten since.")
    return Enrollment.from_dict(earlier.response)


def key_reused() -> IdempotencyKeyReused:
    """The error for an idempotency key that was sent with another request before."""
    return IdempotencyKeyReused("This Idempotency-Key was sent with another request before.")


def set_twins_aside(requests: dict[int, EnrollRequest]) -> dict[int, tuple[int, bool]]:
    """Remove from `requests` every request whose idempotency key an earlier request has.

    Returns, by the place of each removed request, the place of the earlier one and whether both are equal.
    """
    first: dict[str, int] = {}
    twins = {}
    for place, request in list(requests.items()):
        key = request.idempotency_key
        if key and first.setdefault(key, place) != place:
            twins[place] = (first[key], requests[first[key]].fingerprint == request.fingerprint)
            del requests[place]
    return twins


def reject_all(reasons: Sequence[FaceOrReason]) -> SamefaceError:
    """The first photo's reason, with every photo's reason as the fact `rejected`."""
    first = next(reason for reason in reasons if isinstance(reason, SamefaceError))
    first.facts["rejected"] = [rejection.to_dict() for rejection in list_rejections(reasons)]
    return first


def list_rejections(faces: Sequence[FaceOrReason]) -> list[Rejection]:
    """The rejected photos, by their index in `faces`."""
    return [
        Rejection(place, face.code, face.detail)
        for place, face in enumerate(faces)
        if isinstance(face, SamefaceError)
    ]


def describe_enrolment(
    newcomer: NewPerson, faces: Sequence[FaceOrReason], warnings: list[EnrollWarning]
) -> Enrollment:
    """The answer about `newcomer`, from the face or error of each photo and embedding in `faces`."""
    taken = [
        EnrolledFace(face.face_id, place, face.quality)
        for place, face in enumerate(faces)
        if isinstance(face, NewFace)
    ]
    return Enrollment(newcomer.person_id, taken, list_rejections(faces), warnings)


def to_new_face(face: EmbeddedFace, photo: Photo, face_id: str, faces_found: int = 1) -> NewFace:
    """The face to enrol, with its crop, which the store keeps only if the collection stores crops."""
    return NewFace(
        face_id,
        face.embedding.values,
        face.quality.score,
        hash_photo(photo),
        encode_png(face.crop),
        faces_found=faces_found,
    )
