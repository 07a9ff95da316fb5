"""The schemas of identifying one probe."""

from typing import Any, Literal

from pydantic import Field, model_validator

from sameface.api.schemas.fields import Face, FacePolicy, Probe, Request, Response, Similarity, TargetRate
from sameface.model import identify
from sameface.model.bundles.bundle import Bundle
from sameface.model.decision.thresholds import Rule


class SearchOptions(Request):
    """How to search, and what counts as a match."""

    limit: int = Field(5, ge=1, le=100, description="Candidates per face.")
    faces: FacePolicy = Field("all", description="Which faces of a photo to identify.")
    fusion: Literal["max", "mean"] = Field("max", description="By the best face or the mean of them.")
    exact: bool = Field(False, description="Compare every face in full, in large collections too.")
    threshold: Similarity | None = Field(None, description="The similarity of a match.")
    target_fpir: TargetRate | None = Field(None, description="The false positive rate to decide at, instead.")
    extrapolate: bool = Field(True, description="Allow a rate beyond what the calibration's data supports.")

    @model_validator(mode="after")
    def refuse_two_rules(self) -> "SearchOptions":
        """Refuse `threshold` together with `target_fpir`, as each alone sets the threshold."""
        if self.threshold is not None and self.target_fpir is not None:
            raise ValueError("send threshold or target_fpir, not both")
        return self

    def to_options(self, collection: str) -> identify.SearchOptions:
        """The options as the model's SearchOptions."""
        return identify.SearchOptions(collection=collection, **self.chosen())

    def chosen(self) -> dict[str, Any]:
        """The keyword arguments of the model's SearchOptions, without the collection."""
        return {
            "limit": self.limit,
            "faces": self.faces,
            "fusion": self.fusion,
            "exact": self.exact,
            "rule": Rule(self.threshold, self.target_fpir, self.extrapolate),
        }


class IdentifyRequest(Probe, SearchOptions):
    """Who is this?"""

    def to_request(self, collection: str, recogniser: Bundle) -> identify.IdentifyRequest:
        """The request as the model's IdentifyRequest."""
        return identify.IdentifyRequest(
            collection=collection, probe=self.to_probe(recogniser), **self.chosen()
        )


class Candidate(Response):
    """A person who may be the one in question."""

    person_id: str
    name: str | None
    similarity: float
    face_id: str


class IdentifiedFace(Response):
    """One face and who it may be; no match means unknown."""

    face: Face | None = Field(description="Null where an embedding was sent.")
    normalised: bool = Field(False, description="The embedding was sent at another length than 1.")
    match: Candidate | None
    candidates: list[Candidate]


class IdentifyResponse(Response):
    """Who is in a photo."""

    collection: str
    gallery_size: int
    gallery_faces: int
    threshold: float
    target_fpir: float | None
    extrapolated: bool = Field(description="The rate is lower than the calibration's data supports.")
    calibration: str | None
    model: str
    results: list[IdentifiedFace]
    timings_ms: dict[str, float]
