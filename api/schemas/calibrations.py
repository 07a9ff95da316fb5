"""The schemas of /v1/calibrations."""

from datetime import datetime

from pydantic import Field

from sameface.api.schemas.fields import Response
from sameface.model.decision.calibration_files import Calibrations


class MeasuredRate(Response):
    """An error rate and its 95 % interval, from a bootstrap over people."""

    value: float
    low: float
    high: float


class MeasuredRates(Response):
    """Both error rates at a threshold."""

    threshold: float
    fmr: MeasuredRate
    fnmr: MeasuredRate


class GroupOfPeople(Response):
    """How a group fares at the calibration's working threshold."""

    group: str
    people: int
    impostor_pairs: int
    genuine_pairs: int
    rates: MeasuredRates


class MeasuredOn(Response):
    """The data behind a calibration."""

    data: str
    people: int
    faces: int
    failed: int = Field(description="Photos without a face to embed.")
    genuine_pairs: int
    impostor_pairs: int
    by_worst_group: bool


class CalibrationResponse(Response):
    """How similarities of a recogniser relate to error rates, and what that was measured on."""

    name: str
    default: bool = Field(description="Decided by unless a collection has its own.")
    identity: str = Field(description="Of the recogniser's bundle.")
    created_at: datetime
    lowest_fmr: float = Field(description="The lowest rate that 30 false matches or more were expected at.")
    evidence: MeasuredOn
    decades: list[MeasuredRates] = Field(description="At FMR 0.1, 0.01 ... as far as the data supports it.")
    groups: list[GroupOfPeople]


class CalibrationList(Response):
    """What the recogniser is calibrated on."""

    items: list[CalibrationResponse]
    next_cursor: str | None = None

    @classmethod
    def of(cls, calibrations: Calibrations) -> "CalibrationList":
        """All `calibrations` that exist now, with the default one marked."""
        default = calibrations.default.name if calibrations.default else None
        return cls(
            items=[
                CalibrationResponse(**found.describe(), default=found.name == default)
                for found in calibrations.list()
            ]
        )
