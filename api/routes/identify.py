"""Who is this?"""

from typing import Annotated

from fastapi import APIRouter, Depends

from sameface.api.body.read_body import body_of
from sameface.api.dependencies import READ, ROOM, Gallery, Id, Pipeline
from sameface.api.openapi import examples
from sameface.api.openapi.responses import (
    COLLECTION_PROBLEMS,
    PHOTO_PROBLEMS,
    RATE_PROBLEMS,
    answers,
    document_body,
)
from sameface.api.schemas.collections import IdentifyResponse
from sameface.api.schemas.people import IdentifyRequest
from sameface.model import identify as identification

router = APIRouter(prefix="/v1/collections/{collection}", tags=["identify"], dependencies=[READ, ROOM])


@router.post(
    "/identify",
    openapi_extra=document_body(IdentifyRequest),
    responses=answers(
        examples.IDENTIFIED, *COLLECTION_PROBLEMS, *PHOTO_PROBLEMS, "no_face_found", *RATE_PROBLEMS
    ),
)
async def identify(
    collection: Id,
    body: Annotated[IdentifyRequest, Depends(body_of(IdentifyRequest))],
    pipeline: Pipeline,
    gallery: Gallery,
) -> IdentifyResponse:
    """Say who is in a photo, of the people of a collection."""
    probe = body.to_probe(gallery)
    found = await identification.identify(pipeline, gallery, collection, probe, body.to_question())
    return IdentifyResponse.model_validate(found)
