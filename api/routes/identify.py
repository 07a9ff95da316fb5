"""Identifies the faces in a photo among the people of a collection."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request

from sameface.api.access.caller import SEARCH
from sameface.api.body.read_body import body_of
from sameface.api.dependencies import ROOM, CollectionName, loaded
from sameface.api.openapi import examples
from sameface.api.openapi.bodies import document_body
from sameface.api.openapi.responses import (
    COLLECTION_PROBLEMS,
    INDEX_PROBLEMS,
    PHOTO_PROBLEMS,
    RATE_PROBLEMS,
    responses,
)
from sameface.api.schemas.identify import IdentifyRequest, IdentifyResponse
from sameface.model import identify as identification

router = APIRouter(prefix="/v1/collections/{collection}", tags=["identify"], dependencies=[SEARCH, ROOM])


@router.post(
    "/identify",
    openapi_extra=document_body(IdentifyRequest, {"image": examples.PHOTO, "limit": 5}),
    responses=responses(
        examples.IDENTIFIED,
        *COLLECTION_PROBLEMS,
        *INDEX_PROBLEMS,
        *PHOTO_PROBLEMS,
        "no_face_found",
        *RATE_PROBLEMS,
    ),
)
async def identify(
    collection: CollectionName,
    body: Annotated[IdentifyRequest, Depends(body_of(IdentifyRequest))],
    request: Request,
) -> IdentifyResponse:
    """Say who is in a photo, of the people of a collection."""
    pipeline, gallery = loaded(request)
    question = body.to_request(collection, gallery.bundle)
    return IdentifyResponse.model_validate(await identification.identify(pipeline, gallery, question))
