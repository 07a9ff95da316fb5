"""The calibrations of the recogniser."""

from fastapi import APIRouter

from sameface.api.access.caller import READ
from sameface.api.dependencies import Gallery
from sameface.api.openapi import examples
from sameface.api.openapi.responses import KEY_PROBLEMS, responses
from sameface.api.schemas.calibrations import CalibrationList

router = APIRouter(prefix="/v1", tags=["models"], dependencies=[READ])


@router.get("/calibrations", responses=responses(examples.CALIBRATIONS, *KEY_PROBLEMS))
async def list_calibrations(gallery: Gallery) -> CalibrationList:
    """List what the recogniser is calibrated on, and the error rates that its thresholds have there."""
    return await gallery.readers.run(CalibrationList.of, gallery.thresholds.calibrations)
