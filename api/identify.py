"""Who is this?"""

from typing import Annotated

from fastapi import APIRouter, Depends

from api import examples
from api.dependencies import READ, ROOM, Collection, Gallery, Pipeline
from api.documentation import COLLECTION_PROBLEMS, PHOTO_PROBLEMS, answers, document_body
from api.gallery_schemas import IdentifyRequest, IdentifyResponse
from api.uploads import body_of
from model.identify import identify_embedding, identify_photo

router = APIRouter(prefix="/v1/collections/{collection}", tags=["identify"], dependencies=[READ, ROOM])


@router.post(
    "/identify",
    openapi_extra=document_body(IdentifyRequest),
    responses=answers(
        examples.IDENTIFIED, *COLLECTION_PROBLEMS, *PHOTO_PROBLEMS, "no_face_found", "not_calibrated"
    ),
)
async def identify(
    collection: Collection,
    body: Annotated[IdentifyRequest, Depends(body_of(IdentifyRequest))],
    pipeline: Pipeline,
    gallery: Gallery,
) -> IdentifyResponse:
    """Say who is in a photo, of the people of a collection."""
    question = body.to_question()
    if body.image is not None:
        found = await identify_photo(pipeline, gallery, collection, body.image, question)
    else:
        embedding = body.take_embedding(gallery)
        found = await identify_embedding(pipeline, gallery, collection, embedding, question)
    return IdentifyResponse.model_validate(found)
