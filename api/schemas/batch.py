"""The schemas of a batch: its entries and the lines of its response."""

from typing import Annotated

from pydantic import Field

from sameface.api.schemas.fields import Id, Metadata, Name, Probe, Response
from sameface.api.schemas.identify import IdentifiedFace
from sameface.api.schemas.people import EnrolledFace, EnrollOptions, EnrollWarning
from sameface.api.schemas.problems import Problem
from sameface.model.bundles.bundle import Bundle
from sameface.model.enroll import EnrollRequest
from sameface.model.faces import Embedding

EntryId = Annotated[str, Field(min_length=1, max_length=255)]


class ProbeEntry(Probe):
    """A probe, and the id by which its answer is known."""

    id: EntryId


class EnrollEntry(ProbeEntry):
    """Somebody to enrol."""

    person_id: Id | None = Field(
        None, description="A known one gets one more face; one is made if none is sent."
    )
    name: Name | None = Field(None, description="Of a new person; a known one keeps theirs.")
    metadata: Metadata = Field(default={}, description="Of a new person; a known one keeps theirs.")

    def to_request(
        self, collection: str, recogniser: Bundle, options: EnrollOptions, idempotency_key: str | None
    ) -> EnrollRequest:
        """The entry as an EnrollRequest; its idempotency key is the batch's with the entry's id."""
        probe = self.to_probe(recogniser)
        return EnrollRequest(
            collection=collection,
            person_id=self.person_id,
            name=self.name,
            metadata=self.metadata,
            photos=[probe] if isinstance(probe, bytes) else [],
            embeddings=[probe] if isinstance(probe, Embedding) else [],
            may_exist=True,
            faces=options.faces,
            min_quality=options.min_quality,
            idempotency_key=f"{idempotency_key}\n{self.id}" if idempotency_key else None,
        )


class BatchIdentified(Response):
    """Who is in one probe of a batch."""

    id: str
    results: list[IdentifiedFace]


class BatchFailed(Response):
    """Why one entry of a batch failed; without an id, why the whole batch did."""

    id: str | None
    error: Problem


class BatchEnrolled(Response):
    """Who was enrolled by one entry of a batch."""

    id: str
    person_id: str
    faces: list[EnrolledFace]
    warnings: list[EnrollWarning]
