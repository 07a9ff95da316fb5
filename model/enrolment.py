"""From photos or embeddings to an enrolled person: what was taken, what was not, what looks odd."""

import asyncio
import hashlib
import io
import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from PIL import Image

from model.errors import IdempotencyKeyReused, SamefaceError
from model.faces import EmbeddedFace, Embedding
from model.gallery import Gallery
from model.pipeline import Pipeline
from model.records import Answered, Collection, NewFace, NewPerson


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """Somebody who wants to be enrolled."""

    person_id: str | None = None
    name: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    photos: Sequence[bytes] = ()
    embeddings: Sequence[Embedding] = ()
    may_exist: bool = False
    faces: str = "prominent"
    min_quality: float = 0.0

    @property
    def fingerprint(self) -> str:
        """The hash of all that was asked, to tell a retry from another request."""
        parts = [self.person_id, self.name, self.metadata, self.may_exist, self.faces, self.min_quality]
        digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode())
        for content in (*self.photos, *(embedding.values.tobytes() for embedding in self.embeddings)):
            digest.update(hashlib.sha256(content).digest())
        return digest.hexdigest()


class Registrar:
    """Enrols people: photos through the pipeline, then all that is fit into the gallery at once."""

    def __init__(self, pipeline: Pipeline, gallery: Gallery) -> None:
        self.pipeline = pipeline
        self.gallery = gallery

    async def enrol(
        self, collection: Collection, application: Application, idempotency_key: str | None = None
    ) -> dict[str, Any]:
        """The answer to an application; a retry under the same key gets the first one."""
        if idempotency_key:
            earlier = await asyncio.to_thread(self.gallery.store.find_answer, collection, idempotency_key)
            if earlier:
                return self.repeat(earlier, application)
        outcomes = await self.look_at(application)
        rejected = [outcome for outcome in outcomes if isinstance(outcome, SamefaceError)]
        if len(rejected) == len(outcomes):
            raise rejected[0]
        return await asyncio.to_thread(self.record, collection, application, outcomes, idempotency_key)

    async def look_at(self, application: Application) -> list[NewFace | SamefaceError]:
        """What became of each photo and embedding."""

        def look(photo: bytes) -> NewFace | SamefaceError:
            try:
                found = self.pipeline.embed_one_face(
                    "photo", photo, faces=application.faces, min_quality=application.min_quality
                )
            except SamefaceError as error:
                return error
            return to_new_face(found.faces[0], photo)

        brought = [
            NewFace(make_id(), embedding.values, normalised=embedding.normalised)
            for embedding in application.embeddings
        ]
        return [*await self.pipeline.workers.run_all(look, application.photos), *brought]

    def record(
        self,
        collection: Collection,
        application: Application,
        outcomes: Sequence[NewFace | SamefaceError],
        idempotency_key: str | None,
    ) -> dict[str, Any]:
        """Write down who was taken, together with the answer."""
        person_id = application.person_id or make_id()
        taken = [outcome for outcome in outcomes if isinstance(outcome, NewFace)]
        answer = {
            "person_id": person_id,
            "faces": [
                {"face_id": outcome.face_id, "image": place, "quality": outcome.quality}
                for place, outcome in enumerate(outcomes)
                if isinstance(outcome, NewFace)
            ],
            "rejected": [
                {"image": place, "code": outcome.code, "detail": outcome.detail}
                for place, outcome in enumerate(outcomes)
                if isinstance(outcome, SamefaceError)
            ],
            "warnings": self.find_oddities(collection, application, taken),
        }
        newcomer = NewPerson(
            person_id, taken, application.name, application.metadata, may_exist=application.may_exist
        )
        answered = Answered(idempotency_key, application.fingerprint, answer) if idempotency_key else None
        earlier = self.gallery.enrol(collection, [newcomer], answered)
        return self.repeat(earlier, application) if earlier else answer

    def find_oddities(
        self, collection: Collection, application: Application, taken: Sequence[NewFace]
    ) -> list[dict[str, Any]]:
        """The same photo again, a face like somebody else's, a face unlike the person's own."""
        threshold = self.gallery.bundle.contract.published_threshold
        seen = self.gallery.store.find_photos(collection, [face.photo for face in taken if face.photo])
        warnings: list[dict[str, Any]] = [
            {"code": "embedding_normalised", "face_id": face.face_id} for face in taken if face.normalised
        ]
        warnings += [
            {"code": "same_photo", "face_id": face.face_id, "person_id": seen[face.photo][0]}
            for face in taken
            if face.photo in seen
        ]
        if threshold is None:
            return warnings
        known = self.gallery.store.embeddings_of(collection, application.person_id or "")
        collection = self.gallery.get_collection(collection.name)  # as it is now
        probes = [Embedding(face.embedding, self.gallery.bundle.identity) for face in taken]
        for face, candidates in zip(taken, self.gallery.search(collection, probes, 2), strict=True):
            warnings += [
                {
                    "code": "looks_like_another_person",
                    "face_id": face.face_id,
                    "person_id": candidate.person_id,
                    "similarity": candidate.similarity,
                }
                for candidate in candidates
                if candidate.person_id != application.person_id and candidate.similarity >= threshold
            ]
            others = [other.embedding for other in taken if other is not face]
            own = [round(float(face.embedding @ values), 6) for values in [*others, *known.values()]]
            if own and max(own) < threshold:
                warnings.append({"code": "unlike_own_faces", "face_id": face.face_id, "similarity": max(own)})
        return warnings

    def repeat(self, earlier: Answered, application: Application) -> dict[str, Any]:
        """The first answer, if it was to the same request."""
        if earlier.request != application.fingerprint:
            raise IdempotencyKeyReused("This Idempotency-Key was sent with another request before.")
        return earlier.answer


def make_id() -> str:
    """An id that nobody else has."""
    return secrets.token_hex(12)


def to_new_face(face: EmbeddedFace, photo: bytes) -> NewFace:
    """A face to enrol; whether its crop is kept is up to the collection."""
    crop = io.BytesIO()
    Image.fromarray(face.crop).save(crop, "PNG")
    return NewFace(
        make_id(),
        face.embedding.values,
        face.quality.score,
        hashlib.sha256(photo).hexdigest(),
        crop.getvalue(),
    )
