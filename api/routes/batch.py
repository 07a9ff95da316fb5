"""Batches: probes to identify or people to enrol, sent as NDJSON or as a form of photos."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel

from sameface.api.access.caller import SEARCH, WRITE
from sameface.api.dependencies import Collection, Gallery, IdempotencyKey, Pipeline
from sameface.api.openapi import examples
from sameface.api.openapi.bodies import document_batch
from sameface.api.openapi.responses import BATCH_PROBLEMS, RATE_PROBLEMS, stream
from sameface.api.schemas.batch import BatchEnrolled, BatchIdentified, EnrollEntry, ProbeEntry
from sameface.api.schemas.identify import SearchOptions as SearchQuery
from sameface.api.schemas.people import EnrollOptions
from sameface.api.stream.batch_response import BatchResponse
from sameface.model.enroll import Enrollment, EnrollRequest, enroll_many
from sameface.model.errors import SamefaceError
from sameface.model.faces import Embedding
from sameface.model.identify import IdentifiedFace, SearchOptions, identify_many

router = APIRouter(prefix="/v1/collections/{collection}", tags=["batch"])


@dataclass(frozen=True, slots=True)
class Identifying:
    """A batch of probes to identify."""

    schema: ClassVar[type[BaseModel]] = ProbeEntry
    pipeline: Pipeline
    gallery: Gallery
    options: SearchOptions

    def prepare(self, sent: ProbeEntry) -> bytes | Embedding:
        """The photo or the embedding of an entry."""
        return sent.to_probe(self.gallery.bundle)

    async def work(
        self, prepared: list[bytes | Embedding | SamefaceError]
    ) -> Sequence[list[IdentifiedFace] | SamefaceError]:
        """The identified faces of each probe, or its error."""
        return await identify_many(self.pipeline, self.gallery, prepared, self.options)

    def present(self, sent: ProbeEntry, answer: list[IdentifiedFace]) -> BatchIdentified:
        """The line of the response for one probe."""
        return BatchIdentified.model_validate({"id": sent.id, "results": answer})


@dataclass(frozen=True, slots=True)
class Enrolling:
    """A batch of people to enrol."""

    schema: ClassVar[type[BaseModel]] = EnrollEntry
    pipeline: Pipeline
    gallery: Gallery
    collection: str
    options: EnrollOptions
    idempotency_key: str | None

    def prepare(self, sent: EnrollEntry) -> EnrollRequest:
        """The entry as an EnrollRequest."""
        return sent.to_request(self.collection, self.gallery.bundle, self.options, self.idempotency_key)

    async def work(
        self, prepared: list[EnrollRequest | SamefaceError]
    ) -> Sequence[Enrollment | SamefaceError]:
        """The enrolment of each entry, or its error."""
        return await enroll_many(self.pipeline, self.gallery, self.collection, prepared)

    def present(self, sent: EnrollEntry, answer: Enrollment) -> BatchEnrolled:
        """The line of the response for one enrolment."""
        return BatchEnrolled.model_validate({"id": sent.id, **answer.to_dict()})


@router.post(
    "/identify/batch",
    dependencies=[SEARCH],
    status_code=200,  # FastAPI cannot infer the status from BatchResponse
    response_class=BatchResponse,
    openapi_extra=document_batch(ProbeEntry, {"id": "1", "image": examples.PHOTO}),
    responses=stream(BatchIdentified, examples.BATCH_IDENTIFIED, *BATCH_PROBLEMS, *RATE_PROBLEMS),
)
async def identify_batch(
    request: Request,
    collection: Collection,
    options: Annotated[SearchQuery, Query()],
    pipeline: Pipeline,
    gallery: Gallery,
) -> BatchResponse:
    """Say who is in each of many photos or embeddings; answers flow while probes are still being sent."""
    search = options.to_options(collection.name)
    # Refuses a rate that is not supported now, instead of line by line.
    gallery.choose_threshold(collection, search.rule, search.fusion)
    return BatchResponse(request, Identifying(pipeline, gallery, search))


@router.post(
    "/people/batch",
    dependencies=[WRITE],
    status_code=200,  # FastAPI cannot infer the status from BatchResponse
    response_class=BatchResponse,
    openapi_extra=document_batch(EnrollEntry, {"id": "1", "person_id": "ada", "image": examples.PHOTO}),
    responses=stream(BatchEnrolled, examples.BATCH_ENROLLED, *BATCH_PROBLEMS),
)
async def enroll_batch(
    request: Request,
    collection: Collection,
    options: Annotated[EnrollOptions, Query()],
    pipeline: Pipeline,
    gallery: Gallery,
    idempotency_key: IdempotencyKey = None,
) -> BatchResponse:
    """Enrol many people by a photo or an embedding each; a known `person_id` gets one more face.

    What is answered is on the disk. With an Idempotency-Key a retry of all or of a part enrols nobody twice;
    the ids of the entries must differ then.
    """
    return BatchResponse(request, Enrolling(pipeline, gallery, collection.name, options, idempotency_key))
