"""The schemas of /v1/models."""

from pydantic import Field

from sameface.api.schemas.fields import Response
from sameface.model.bundles.bundle import Bundle
from sameface.model.runtime.session_pool import SessionPool


class LoadedModel(Response):
    """A network that the server runs."""

    name: str
    kind: str
    dimension: int | None
    published_threshold: float | None
    calibration: str | None
    licence: str
    source: str
    sha256: str
    identity: str = Field(
        description="The hash of file and contract, to which galleries and calibrations bind."
    )
    device: str
    provider: str

    @classmethod
    def from_bundle(cls, bundle: Bundle, sessions: SessionPool) -> "LoadedModel":
        """The description of `bundle`, and the device of its `sessions`."""
        return cls(**bundle.describe(), device=sessions.device, provider=sessions.provider)


class ModelList(Response):
    """The networks that the server runs."""

    items: list[LoadedModel]
    next_cursor: str | None = None
