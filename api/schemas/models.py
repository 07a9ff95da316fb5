"""The schemas of /v1/models."""

from pydantic import Field

from sameface.api.schemas.fields import Response
from sameface.model.bundles.bundle import Bundle
from sameface.model.runtime.session_pool import SessionPool


class PrecisionProof(Response):
    """A lower precision on this machine, compared with the exact one; what was not measured is null."""

    precision: str
    used: bool
    fault: str | None = Field(description="Why it is not used.")
    faces: int | None
    own_faces: bool = Field(description="Whether the faces are the operator's own, or drawn ones.")
    mean_cosine: float | None = Field(description="Of the two embeddings of a face.")
    worst_cosine: float | None = Field(description="0.999 is the least that is used.")
    crops_per_second: float | None = Field(description="On one thread, taking turns with the exact one.")
    exact_crops_per_second: float | None


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
    precision: str = Field(description="What it computes in: `exact`, as its file says, `bf16` or `fp16`.")
    proof: PrecisionProof | None = Field(
        description="The lower precision of the device, if it was looked for, which recognisers alone have."
    )

    @classmethod
    def from_bundle(cls, bundle: Bundle, sessions: SessionPool) -> "LoadedModel":
        """The description of `bundle`, and the device and precision of its `sessions`."""
        return cls(
            **bundle.describe(),
            device=sessions.device,
            provider=sessions.provider,
            precision=sessions.precision,
            proof=PrecisionProof(**sessions.proof.to_dict()) if sessions.proof else None,
        )


class ModelList(Response):
    """The networks that the server runs."""

    items: list[LoadedModel]
    next_cursor: str | None = None
