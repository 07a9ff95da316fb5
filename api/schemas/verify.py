"""The schemas of /v1/verify."""

from pydantic import Field, model_validator

from sameface.api.schemas.fields import Face, Id, OnePolicy, Photo, Request, Response, Similarity, TargetRate
from sameface.model import verify
from sameface.model.decision.thresholds import Rule


class VerifyRequest(Request):
    """A photo, what it is compared with, and how sure the answer must be."""

    probe: Photo = Field(description="The photo in question.")
    reference: Photo | None = Field(None, description="The photo it is compared with.")
    collection: Id | None = Field(None, description="Instead of a reference: the collection of `person_id`.")
    person_id: Id | None = Field(None, description="The enrolled person that the probe is compared with.")
    faces: OnePolicy = Field("prominent", description="Which face of a photo to take.")
    threshold: Similarity | None = Field(None, description="The similarity from which it is the same person.")
    target_fmr: TargetRate | None = Field(
        None, description="The false match rate to decide at, instead of a threshold."
    )
    extrapolate: bool = Field(False, description="Allow a rate beyond what the calibration's data supports.")
    min_quality: float = Field(0.0, ge=0, le=1, description="Refuse a face of a lower quality score.")

    @model_validator(mode="after")
    def need_one_rule_and_one_reference(self) -> "VerifyRequest":
        """Require at most one of threshold and target_fmr, and either a reference or an enrolled person."""
        if self.threshold is not None and self.target_fmr is not None:
            raise ValueError("send threshold or target_fmr, not both")
        enrolled = (self.collection is not None, self.person_id is not None)
        if enrolled not in ((False, False), (True, True)) or any(enrolled) == (self.reference is not None):
            raise ValueError("send reference, or collection and person_id")
        return self

    def to_request(self) -> verify.VerifyRequest:
        """The request as the model's VerifyRequest."""
        reference: bytes | verify.EnrolledPerson | None = self.reference
        if reference is None:
            reference = verify.EnrolledPerson(str(self.collection), str(self.person_id))
        return verify.VerifyRequest(
            probe=self.probe,
            reference=reference,
            rule=Rule(self.threshold, self.target_fmr, self.extrapolate),
            faces=self.faces,
            min_quality=self.min_quality,
        )


class ComparedPhoto(Response):
    """What was seen in one of the two photos."""

    faces_found: int
    face: Face


class ComparedPerson(Response):
    """The enrolled face that the probe was compared with."""

    person_id: str
    face_id: str


class VerifyResponse(Response):
    """Whether two photos show the same person, and all that the answer rests on."""

    same_person: bool
    similarity: float = Field(description="The cosine of the two embeddings, higher is closer.")
    threshold: float
    target_fmr: float | None
    estimated_fmr: float | None = Field(
        description="The false match rate if the threshold stood at this similarity; unless `extrapolate`"
        " was sent, never below the lowest rate that the calibration's data supports."
    )
    estimated_fmr_is_bound: bool = Field(
        description="The calibration's data only says that the rate is lower than `estimated_fmr`."
    )
    extrapolated: bool = Field(
        description="The threshold or the estimate is beyond what the calibration's data supports."
    )
    calibration: str | None
    model: str
    probe: ComparedPhoto
    reference: ComparedPhoto | ComparedPerson
    timings_ms: dict[str, float] = Field(
        description="Work per stage, both photos added up; `total` is the time on the clock."
    )
