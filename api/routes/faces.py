"""The faces of one photo: where they are, and their embeddings."""

from typing import Annotated

from fastapi import APIRouter, Depends

from sameface.api.access.caller import READ
from sameface.api.body.read_body import body_of
from sameface.api.dependencies import ROOM, Pipeline
from sameface.api.openapi import examples
from sameface.api.openapi.bodies import document_body
from sameface.api.openapi.responses import PHOTO_PROBLEMS, responses
from sameface.api.schemas.faces import DetectRequest, DetectResponse, EmbedRequest, EmbedResponse

router = APIRouter(prefix="/v1", tags=["faces"], dependencies=[READ, ROOM])


@router.post(
    "/detect",
    openapi_extra=document_body(DetectRequest, {"image": examples.PHOTO}),
    responses=responses(examples.DETECT, *PHOTO_PROBLEMS),
)
async def detect(
    body: Annotated[DetectRequest, Depends(body_of(DetectRequest))], pipeline: Pipeline
) -> DetectResponse:
    """Find the faces in a photo."""
    return DetectResponse.model_validate(await pipeline.detect(body.image, body.faces))


@router.post(
    "/embed",
    openapi_extra=document_body(EmbedRequest, {"image": examples.PHOTO}),
    responses=responses(examples.EMBED, *PHOTO_PROBLEMS),
)
async def embed(
    body: Annotated[EmbedRequest, Depends(body_of(EmbedRequest))], pipeline: Pipeline
) -> EmbedResponse:
    """Find the faces in a photo and embed each."""
    return EmbedResponse.from_embeddings(await pipeline.embed(body.image, body.faces), body.encoding)
