"""The shapes of a batch's entries and answers."""

from typing import Annotated

from pydantic import Field

from sameface.api.schemas.collections import EnrolledFace, IdentifyResult, Oddity
from sameface.api.schemas.fields import Id, Response
from sameface.api.schemas.people import EnrolOptions, Metadata, Name, Probe
from sameface.model.enroll import Application
from sameface.model.faces import Embedding
from sameface.model.gallery.gallery import Gallery

EntryId = Annotated[str, Field(min_length=1, max_length=255)]


class ProbeEntry(Probe):
    """A probe, and the id by which its answer is known."""

    id: EntryId


class EnrolEntry(ProbeEntry):
    """Somebody to enrol."""

    person_id: Id | None = Field(
        None, description="A known one gets one more face; one is made if none is sent."
    )
    name: Name | None = Field(None, description="Of a new person; a known one keeps theirs.")
    metadata: Metadata = Field(default={}, description="Of a new person; a known one keeps theirs.")

    def to_application(
        self, gallery: Gallery, options: EnrolOptions, idempotency_key: str | None
    ) -> Application:
        """For the registrar."""
        probe = self.to_probe(gallery)
        return Application(
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
    results: list[IdentifyResult]


class BatchEnrolled(Response):
    """Who was enrolled by one entry of a batch."""

    id: str
    person_id: str
    faces: list[EnrolledFace]
    warnings: list[Oddity]
