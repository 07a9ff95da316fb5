"""Verifies whether two photos show the same person."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request

from sameface.api.access.caller import READ_OR_SEARCH, refuse_unseen, refuse_without
from sameface.api.body.read_body import body_of
from sameface.api.dependencies import ROOM, loaded
from sameface.api.openapi import examples
from sameface.api.openapi.bodies import document_body
from sameface.api.openapi.responses import PHOTO_PROBLEMS, STORE_PROBLEMS, responses
from sameface.api.request_context import context_of
from sameface.api.schemas.verify import VerifyRequest, VerifyResponse
from sameface.model import verify as verification

router = APIRouter(prefix="/v1", tags=["verify"], dependencies=[READ_OR_SEARCH, ROOM])


@router.post(
    "/verify",
    openapi_extra=document_body(VerifyRequest, {"probe": examples.PHOTO, "reference": examples.PHOTO}),
    responses=responses(
        examples.VERIFY,
        *PHOTO_PROBLEMS,
        *STORE_PROBLEMS,
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
    body: Annotated[VerifyRequest, Depends(body_of(VerifyRequest))], request: Request
) -> VerifyResponse:
    """Say whether a photo shows the same person as another photo, or as an enrolled person's."""
    pipeline, gallery = loaded(request)
    caller = context_of(request.scope).caller
    refuse_without(caller, "read" if body.collection is None else "search")
    if body.collection is not None:
        refuse_unseen(caller, body.collection)
    decision = await verification.verify(pipeline, gallery, body.to_request())
    return VerifyResponse.model_validate(decision)
