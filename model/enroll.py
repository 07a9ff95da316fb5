"""From photos or embeddings to enrolled people: what was taken, what was not, what looks odd."""

import asyncio
import hashlib
import json
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from sameface.model.enroll_warnings import find_oddities
from sameface.model.errors import IdempotencyKeyReused, SamefaceError
from sameface.model.faces import EmbeddedFace, Embedding
from sameface.model.gallery.gallery import Gallery
from sameface.model.photo.image import encode_png
from sameface.model.pipeline import Pipeline
from sameface.model.store.records import Collection, NewFace, NewPerson, RememberedResponse

Answer: TypeAlias = dict[str, Any]
Outcome: TypeAlias = NewFace | SamefaceError
Photo: TypeAlias = tuple["Application", bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """Somebody who wants to be enrolled; with an idempotency key, once."""

    person_id: str | None = None
    name: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    photos: Sequence[bytes] = ()
    embeddings: Sequence[Embedding] = ()
    may_exist: bool = False
    must_exist: bool = False
    faces: str = "prominent"
    min_quality: float = 0.0
    idempotency_key: str | None = None

    @property
    def fingerprint(self) -> str:
        """The hash of all that was asked, to tell a retry from another request."""
        who = [self.person_id, self.name, self.metadata, self.may_exist, self.must_exist]
        parts = [*who, self.faces, self.min_quality]
        digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode())
        for content in (*self.photos, *(embedding.values.tobytes() for embedding in self.embeddings)):
            digest.update(hashlib.sha256(content).digest())
        return digest.hexdigest()


class Registrar:
    """Enrols people: photos through the pipeline, then all that is fit into the gallery at once."""

    def __init__(self, pipeline: Pipeline, gallery: Gallery) -> None:
        self.pipeline = pipeline
        self.gallery = gallery

    async def enrol(self, collection: Collection, application: Application) -> Answer:
        """The answer to an application; a retry under the same key gets the first one."""
        [earlier] = await asyncio.to_thread(self.find_earlier, collection, [application])
        if earlier:
            return repeat(earlier, application)
        [outcomes] = await self.look_at([application], self.pipeline.workers.run_all)
        rejected = [outcome for outcome in outcomes if isinstance(outcome, SamefaceError)]
        if len(rejected) == len(outcomes):
            raise reject_all(rejected)
        [answer] = await asyncio.to_thread(self.record, collection, [application], [outcomes])
        if isinstance(answer, SamefaceError):
            raise answer
        return answer

    async def enrol_many(
        self, name: str, applications: Sequence[Application | SamefaceError]
    ) -> list[Answer | SamefaceError]:
        """The answers to applications of one photo or embedding each; those that fit are written at once.

        One that failed, or fails here, does not fail the others. Photos wait for their turn in the queue.
        """
        answers: dict[int, Answer | SamefaceError] = {
            place: entry for place, entry in enumerate(applications) if isinstance(entry, SamefaceError)
        }
        open_ones = {
            place: entry for place, entry in enumerate(applications) if isinstance(entry, Application)
        }
        twins = set_twins_aside(open_ones)
        try:
            collection = await asyncio.to_thread(self.gallery.get_collection, name)
            answers |= await self.answer_retries(collection, open_ones)
            answers |= await self.enrol_block(collection, open_ones)
        except SamefaceError as error:  # of the collection or the disk: nothing of this block was written
            answers |= dict.fromkeys(open_ones, error)
        for place, (first, same) in twins.items():
            answers[place] = answers[first] if same else key_reused()
        return [answers[place] for place in range(len(applications))]

    async def answer_retries(
        self, collection: Collection, open_ones: dict[int, Application]
    ) -> dict[int, Answer | SamefaceError]:
        """The first answers to those that were answered before, who are open no longer."""
        earlier = await asyncio.to_thread(self.find_earlier, collection, list(open_ones.values()))
        answered = {place: found for place, found in zip(open_ones, earlier, strict=True) if found}
        return {place: repeat_or_refuse(found, open_ones.pop(place)) for place, found in answered.items()}

    async def enrol_block(
        self, collection: Collection, open_ones: dict[int, Application]
    ) -> dict[int, Answer | SamefaceError]:
        """What became of each, all that were fit written together."""
        looks = await self.look_at(list(open_ones.values()), self.pipeline.workers.run_in_turn)
        outcomes = {place: outcome for place, [outcome] in zip(open_ones, looks, strict=True)}
        fit = [place for place, outcome in outcomes.items() if isinstance(outcome, NewFace)]
        applications, taken = [open_ones[place] for place in fit], [[outcomes[place]] for place in fit]
        answers = await asyncio.to_thread(self.record, collection, applications, taken) if fit else []
        unfit = {place: found for place, found in outcomes.items() if isinstance(found, SamefaceError)}
        return {**dict(zip(fit, answers, strict=True)), **unfit}

    def find_earlier(
        self, collection: Collection, applications: Sequence[Application]
    ) -> list[RememberedResponse | None]:
        """What was answered to the keys of applications before."""
        keys = [entry.idempotency_key for entry in applications if entry.idempotency_key]
        found = self.gallery.store.idempotency_keys.find(collection, keys) if keys else {}
        return [found.get(entry.idempotency_key or "") for entry in applications]

    async def look_at(
        self,
        applications: Sequence[Application],
        run: Callable[[Callable[[Photo], Outcome], Sequence[Photo]], Awaitable[list[Outcome]]],
    ) -> list[list[Outcome]]:
        """What became of each photo and embedding of each application."""

        def look(entry: Photo) -> Outcome:
            application, photo = entry
            try:
                found = self.pipeline.embed_one_face(
                    "photo", photo, faces=application.faces, min_quality=application.min_quality
                )
            except SamefaceError as error:
                return error
            return to_new_face(found.faces[0], photo)

        seen = iter(await run(look, [(entry, photo) for entry in applications for photo in entry.photos]))
        return [
            [next(seen) for _ in entry.photos] + [bring_face(embedding) for embedding in entry.embeddings]
            for entry in applications
        ]

    def record(
        self,
        collection: Collection,
        applications: Sequence[Application],
        outcomes: Sequence[Sequence[Outcome]],
    ) -> list[Answer | SamefaceError]:
        """Write down who was taken, together with the answers."""
        newcomers = [
            NewPerson(
                entry.person_id or make_id(),
                [outcome for outcome in found if isinstance(outcome, NewFace)],
                entry.name,
                entry.metadata,
                may_exist=entry.may_exist,
                must_exist=entry.must_exist,
            )
            for entry, found in zip(applications, outcomes, strict=True)
        ]
        oddities = find_oddities(self.gallery, collection, newcomers)
        answers = [
            to_answer(newcomer, found, warnings)
            for newcomer, found, warnings in zip(newcomers, outcomes, oddities, strict=True)
        ]
        answered = [
            RememberedResponse(entry.idempotency_key, entry.fingerprint, answer)
            for entry, answer in zip(applications, answers, strict=True)
            if entry.idempotency_key
        ]
        earlier = self.gallery.enrol(collection, newcomers, answered)
        return [
            repeat_or_refuse(earlier[entry.idempotency_key], entry)
            if entry.idempotency_key in earlier
            else answer
            for entry, answer in zip(applications, answers, strict=True)
        ]


def repeat(earlier: RememberedResponse, application: Application) -> Answer:
    """The first answer, if it was to the same request."""
    if earlier.request_sha256 != application.fingerprint:
        raise key_reused()
    return earlier.response


def repeat_or_refuse(earlier: RememberedResponse, application: Application) -> Answer | SamefaceError:
    """The same where one failure must not be raised among others."""
    try:
        return repeat(earlier, application)
    except SamefaceError as error:
        return error


def key_reused() -> IdempotencyKeyReused:
    """A key stands for one request."""
    return IdempotencyKeyReused("This Idempotency-Key was sent with another request before.")


def set_twins_aside(applications: dict[int, Application]) -> dict[int, tuple[int, bool]]:
    """Take those out that have the key of one before them: whose it is, and whether they ask the same."""
    first: dict[str, int] = {}
    twins = {}
    for place, application in list(applications.items()):
        key = application.idempotency_key
        if key and first.setdefault(key, place) != place:
            twins[place] = (first[key], applications[first[key]].fingerprint == application.fingerprint)
            del applications[place]
    return twins


def reject_all(rejected: Sequence[SamefaceError]) -> SamefaceError:
    """The first photo's reason, with all photos' reasons as the fact `rejected`."""
    rejected[0].facts["rejected"] = describe_rejected(rejected)
    return rejected[0]


def describe_rejected(outcomes: Sequence[Outcome]) -> list[Answer]:
    """Place, code and detail of every photo that was rejected."""
    return [
        {"image": place, "code": outcome.code, "detail": outcome.detail}
        for place, outcome in enumerate(outcomes)
        if isinstance(outcome, SamefaceError)
    ]


def to_answer(newcomer: NewPerson, outcomes: Sequence[Outcome], warnings: list[Answer]) -> Answer:
    """What was taken, what was not, and what looks odd."""
    return {
        "person_id": newcomer.person_id,
        "faces": [
            {"face_id": outcome.face_id, "image": place, "quality": outcome.quality}
            for place, outcome in enumerate(outcomes)
            if isinstance(outcome, NewFace)
        ],
        "rejected": describe_rejected(outcomes),
        "warnings": warnings,
    }


def make_id() -> str:
    """An id that nobody else has."""
    return secrets.token_hex(12)


def bring_face(embedding: Embedding) -> NewFace:
    """A face of which only the embedding is known."""
    return NewFace(make_id(), embedding.values, normalised=embedding.normalised)


def to_new_face(face: EmbeddedFace, photo: bytes) -> NewFace:
    """A face to enrol; whether its crop is kept is up to the collection."""
    return NewFace(
        make_id(),
        face.embedding.values,
        face.quality.score,
        hashlib.sha256(photo).hexdigest(),
        encode_png(face.crop),
    )
