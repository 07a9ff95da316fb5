"""Many at a time: probes to identify and people to enrol, as NDJSON or as a form of photos."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel

from sameface.api.dependencies import READ, WRITE, Collection, Gallery, IdempotencyKey, Pipeline, Registrar
from sameface.api.openapi import examples
from sameface.api.openapi.responses import BATCH_PROBLEMS, RATE_PROBLEMS, document_batch, stream
from sameface.api.schemas.batch import BatchEnrolled, BatchIdentified, EnrolEntry, ProbeEntry
from sameface.api.schemas.people import EnrolOptions, SearchOptions
from sameface.api.stream.batch_response import BatchResponse
from sameface.model.enroll import Answer, Application
from sameface.model.errors import SamefaceError
from sameface.model.faces import Embedding
from sameface.model.identify import Question, Result, identify_many

router = APIRouter(prefix="/v1/collections/{collection}", tags=["batch"])


@dataclass(frozen=True, slots=True)
class Identifying:
    """What is done with probes."""

    schema: ClassVar[type[BaseModel]] = ProbeEntry
    pipeline: Pipeline
    gallery: Gallery
    collection: str
    question: Question

    def prepare(self, entry: ProbeEntry) -> bytes | Embedding:
        """The photo or embedding."""
        return entry.to_probe(self.gallery)

    async def work(
        self, prepared: list[bytes | Embedding | SamefaceError]
    ) -> Sequence[list[Result] | SamefaceError]:
        """Who is in each."""
        return await identify_many(self.pipeline, self.gallery, self.collection, prepared, self.question)

    def present(self, entry: ProbeEntry, answer: list[Result]) -> BatchIdentified:
        """A line of the answer."""
        return BatchIdentified.model_validate({"id": entry.id, "results": answer})


@dataclass(frozen=True, slots=True)
class Enrolling:
    """What is done with people to enrol."""

    schema: ClassVar[type[BaseModel]] = EnrolEntry
    registrar: Registrar
    collection: str
    options: EnrolOptions
    idempotency_key: str | None

    def prepare(self, entry: EnrolEntry) -> Application:
        """For the registrar."""
        return entry.to_application(self.registrar.gallery, self.options, self.idempotency_key)

    async def work(self, prepared: list[Application | SamefaceError]) -> Sequence[Answer | SamefaceError]:
        """Who was taken."""
        return await self.registrar.enrol_many(self.collection, prepared)

    def present(self, entry: EnrolEntry, answer: Answer) -> BatchEnrolled:
        """A line of the answer."""
        return BatchEnrolled(id=entry.id, **answer)


@router.post(
    "/identify/batch",
    dependencies=[READ],
    status_code=200,  # FastAPI cannot read it off this class
    response_class=BatchResponse,
    openapi_extra=document_batch(ProbeEntry),
    responses=stream(examples.BATCH_IDENTIFIED, *BATCH_PROBLEMS, *RATE_PROBLEMS),
)
async def identify_batch(
    request: Request,
    collection: Collection,
    options: Annotated[SearchOptions, Query()],
    pipeline: Pipeline,
    gallery: Gallery,
) -> BatchResponse:
    """Say who is in each of many photos or embeddings; answers flow while probes are still being sent."""
    question = options.to_question()
    gallery.choose_threshold(collection, question.rule, question.fusion)  # which may be refused, so do it now
    return BatchResponse(request, Identifying(pipeline, gallery, collection.name, question))


@router.post(
    "/people/batch",
    dependencies=[WRITE],
    status_code=200,  # FastAPI cannot read it off this class
    response_class=BatchResponse,
    openapi_extra=document_batch(EnrolEntry),
    responses=stream(examples.BATCH_ENROLLED, *BATCH_PROBLEMS),
)
async def enrol_batch(
    request: Request,
    collection: Collection,
    options: Annotated[EnrolOptions, Query()],
    registrar: Registrar,
    idempotency_key: IdempotencyKey = None,
) -> BatchResponse:
    """Enrol many people by a photo or an embedding each; a known `person_id` gets one more face.

    What is answered is on the disk. With an Idempotency-Key a retry of all or of a part enrols nobody twice;
    the ids of the entries must differ then.
    """
    return BatchResponse(request, Enrolling(registrar, collection.name, options, idempotency_key))
