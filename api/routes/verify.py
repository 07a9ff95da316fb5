"""Is this the same face?"""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends

from sameface.api.body.read_body import body_of
from sameface.api.dependencies import READ, ROOM, Gallery, Pipeline
from sameface.api.openapi import examples
from sameface.api.openapi.responses import PHOTO_PROBLEMS, answers, document_body
from sameface.api.schemas.fields import VerifyRequest, VerifyResponse
from sameface.model.decision.thresholds import Rule
from sameface.model.gallery.gallery import Gallery as OpenGallery
from sameface.model.verify import EnrolledPerson

router = APIRouter(prefix="/v1", tags=["verify"], dependencies=[READ, ROOM])


@router.post(
    "/verify",
    openapi_extra=document_body(VerifyRequest),
    responses=answers(
        examples.VERIFY,
        *PHOTO_PROBLEMS,
        "no_face_found",
        "face_too_small",
        "low_quality_face",
        "not_calibrated",
        "fmr_not_supported",
        "calibration_not_found",
        "collection_not_found",
        "person_not_found",
        "model_mismatch",
    ),
)
async def verify(
    body: Annotated[VerifyRequest, Depends(body_of(VerifyRequest))], pipeline: Pipeline, gallery: Gallery
) -> VerifyResponse:
    """Say whether a photo shows the same person as another photo, or as an enrolled person's."""
    reference: bytes | EnrolledPerson | None = body.reference
    if reference is None:
        reference = await asyncio.to_thread(find_person, gallery, body)
    decision = await pipeline.verify(
        body.probe,
        reference,
        rule=Rule(body.threshold, body.target_fmr, body.extrapolate),
        faces=body.faces,
        min_quality=body.min_quality,
    )
    return VerifyResponse.model_validate(decision)


def find_person(gallery: OpenGallery, body: VerifyRequest) -> EnrolledPerson:
    """The enrolled person that the request names."""
    return gallery.get_enrolled(gallery.get_collection(str(body.collection)), str(body.person_id))
