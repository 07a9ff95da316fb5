"""Is this the same face?"""

from typing import Annotated

from fastapi import APIRouter, Depends

from api import examples
from api.dependencies import READ, ROOM, Pipeline
from api.documentation import PHOTO_PROBLEMS, answers, document_body
from api.schemas import VerifyRequest, VerifyResponse
from api.uploads import body_of

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
    ),
)
async def verify(
    body: Annotated[VerifyRequest, Depends(body_of(VerifyRequest))], pipeline: Pipeline
) -> VerifyResponse:
    """Say whether two photos show the same person."""
    decision = await pipeline.verify(
        body.probe,
        body.reference,
        threshold=body.threshold,
        target_fmr=body.target_fmr,
        faces=body.faces,
        min_quality=body.min_quality,
    )
    return VerifyResponse.model_validate(decision)
