"""Which calibrations a threshold can rest on."""

import asyncio

from fastapi import APIRouter

from sameface.api.dependencies import READ, Pipeline
from sameface.api.openapi import examples
from sameface.api.openapi.responses import KEY_PROBLEMS, answers
from sameface.api.schemas.calibrations import CalibrationList

router = APIRouter(prefix="/v1", tags=["models"], dependencies=[READ])


@router.get("/calibrations", responses=answers(examples.CALIBRATIONS, *KEY_PROBLEMS))
async def list_calibrations(pipeline: Pipeline) -> CalibrationList:
    """List what the recogniser is calibrated on, and the error rates that its thresholds have there."""
    return await asyncio.to_thread(CalibrationList.of, pipeline.thresholds.calibrations)
