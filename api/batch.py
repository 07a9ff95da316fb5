"""Many at a time: probes to identify and people to enrol, as NDJSON or as a form of photos."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel

from api import examples
from api.batch_schemas import BatchEnrolled, BatchIdentified, EnrolEntry, ProbeEntry
from api.dependencies import READ, WRITE, Collection, Gallery, IdempotencyKey, Pipeline, Registrar
from api.documentation import BATCH_PROBLEMS, document_batch, stream
from api.gallery_schemas import EnrolOptions, SearchOptions
from api.streams import BatchResponse
from model.errors import SamefaceError
from model.identify import choose_rule, identify_many

router = APIRouter(prefix="/v1/collections/{collection}", tags=["batch"])


@router.post(
    "/identify/batch",
    dependencies=[READ],
    status_code=200,  # FastAPI cannot read it off this class
    response_class=BatchResponse,
    openapi_extra=document_batch(ProbeEntry),
    responses=stream(examples.BATCH_IDENTIFIED, *BATCH_PROBLEMS),
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
    choose_rule(gallery, question)

    async def work(block: list[ProbeEntry]) -> Sequence[BaseModel | SamefaceError]:
        probes = [entry.try_probe(gallery) for entry in block]
        answers = await identify_many(pipeline, gallery, collection.name, probes, question)
        return BatchIdentified.from_answers(block, answers)

    return BatchResponse(request, ProbeEntry, work)


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

    async def work(block: list[EnrolEntry]) -> Sequence[BaseModel | SamefaceError]:
        applications = [entry.to_application(registrar.gallery, options, idempotency_key) for entry in block]
        return BatchEnrolled.from_answers(block, await registrar.enrol_many(collection.name, applications))

    return BatchResponse(request, EnrolEntry, work)
