"""Batches: probes to identify or people to enrol, as NDJSON, a form of photos, an array or Arrow."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from fastapi import APIRouter, Query, Request
from pydantic import BaseModel

from sameface.api.access.caller import SEARCH, WRITE
from sameface.api.dependencies import Collection, Gallery, IdempotencyKey, Pipeline
from sameface.api.openapi import examples
from sameface.api.openapi.bodies import document_batch
from sameface.api.openapi.responses import BATCH_PROBLEMS, RATE_PROBLEMS, stream
from sameface.api.schemas.batch import BatchEnrolled, BatchIdentified, EnrollEntry, ProbeEntry
from sameface.api.schemas.identify import SearchOptions as SearchQuery
from sameface.api.schemas.people import EnrollOptions
from sameface.api.stream.answers import Asked, EnrolledAnswers, IdentifiedAnswers
from sameface.api.stream.batch_response import BatchResponse, Parse
from sameface.api.stream.entries import Entry
from sameface.api.stream.formats.media_types import ARROW, FORM, NDJSON, NPY
from sameface.api.stream.probe_block import ProbeBlock, read_plain_line
from sameface.api.stream.rows import Rows
from sameface.model.enroll import EnrollRequest, enroll_many
from sameface.model.errors import SamefaceError
from sameface.model.faces import Embedding, Floats
from sameface.model.gallery.probes import Probes
from sameface.model.identify import SearchOptions, identify_many

router = APIRouter(prefix="/v1/collections/{collection}", tags=["batch"])


@dataclass(frozen=True, slots=True)
class Identifying:
    """A batch of probes to identify."""

    schema: ClassVar[type[BaseModel]] = ProbeEntry
    media_types: ClassVar[tuple[str, ...]] = (NDJSON, FORM, NPY, ARROW)
    texts: ClassVar[tuple[str, ...]] = ()
    at_once: ClassVar[int] = 2  # with more of them, one batch would have the threads of all others
    pipeline: Pipeline
    gallery: Gallery
    options: SearchOptions
    places: asyncio.Semaphore  # of the work queue, for the photos of all blocks together

    @property
    def dimension(self) -> int:
        """The numbers of an embedding."""
        return self.gallery.bundle.contract.dimension or 0

    def prepare(self, block: Sequence[Entry | Rows], parse: Parse) -> tuple[Asked, Probes]:
        """Who asked, and the probes."""
        probes = ProbeBlock(self.dimension)
        for piece in block:
            if isinstance(piece, Rows):
                probes.add_rows(piece)
            elif plain := read_plain_line(piece, self.dimension):
                probes.add(plain[0], piece.number, plain[1])
            else:
                name, sent = parse(piece)
                probes.add(name, piece.number, self._to_probe(sent))
        return probes.finish()

    async def work(self, asked: Asked, prepared: Probes) -> IdentifiedAnswers:
        """Who is in each probe."""
        found = await identify_many(self.pipeline, self.gallery, prepared, self.options, self.places)
        return IdentifiedAnswers(asked, found)

    def _to_probe(self, sent: ProbeEntry | SamefaceError) -> bytes | Floats | SamefaceError:
        """The photo of an entry, or its embedding as it was sent, or its error."""
        if isinstance(sent, SamefaceError):
            return sent
        try:
            probe = sent.to_probe(self.gallery.bundle)
        except SamefaceError as error:
            return error
        return np.array(sent.embedding, np.float32) if isinstance(probe, Embedding) else probe


@dataclass(frozen=True, slots=True)
class Enrolling:
    """A batch of people to enrol."""

    schema: ClassVar[type[BaseModel]] = EnrollEntry
    media_types: ClassVar[tuple[str, ...]] = (NDJSON, FORM, ARROW)
    texts: ClassVar[tuple[str, ...]] = ("person_id", "name")
    at_once: ClassVar[int] = 1  # an entry may add a face to whom one before it enrolled
    pipeline: Pipeline
    gallery: Gallery
    collection: str
    options: EnrollOptions
    idempotency_key: str | None

    @property
    def dimension(self) -> int:
        """The numbers of an embedding."""
        return self.gallery.bundle.contract.dimension or 0

    def prepare(
        self, block: Sequence[Entry | Rows], parse: Parse
    ) -> tuple[Asked, list[EnrollRequest | SamefaceError]]:
        """Who asked, and each entry as an EnrollRequest or its error."""
        entries = [
            entry for piece in block for entry in (piece.to_entries() if isinstance(piece, Rows) else [piece])
        ]
        parsed = [parse(entry) for entry in entries]
        asked = Asked([name for name, _ in parsed], [entry.number for entry in entries])
        return asked, [self._to_request(sent) for _, sent in parsed]

    async def work(self, asked: Asked, prepared: list[EnrollRequest | SamefaceError]) -> EnrolledAnswers:
        """The enrolment of each entry, or its error."""
        outcomes = await enroll_many(self.pipeline, self.gallery, self.collection, prepared)
        return EnrolledAnswers(asked, outcomes)

    def _to_request(self, sent: EnrollEntry | SamefaceError) -> EnrollRequest | SamefaceError:
        """The entry as an EnrollRequest, or its error."""
        if isinstance(sent, SamefaceError):
            return sent
        try:
            return sent.to_request(self.collection, self.gallery.bundle, self.options, self.idempotency_key)
        except SamefaceError as error:
            return error


@router.post(
    "/identify/batch",
    dependencies=[SEARCH],
    status_code=200,  # FastAPI cannot infer the status from BatchResponse
    response_class=BatchResponse,
    openapi_extra=document_batch(ProbeEntry, Identifying.media_types, {"id": "1", "image": examples.PHOTO}),
    responses=stream(BatchIdentified, examples.BATCH_IDENTIFIED, *BATCH_PROBLEMS, *RATE_PROBLEMS),
)
async def identify_batch(
    request: Request,
    collection: Collection,
    options: Annotated[SearchQuery, Query()],
    pipeline: Pipeline,
    gallery: Gallery,
) -> BatchResponse:
    """Say who is in each of many photos or embeddings; answers flow while probes are still being sent."""
    search = options.to_options(collection.name)
    # Refuses a rate that is not supported now, instead of line by line.
    gallery.choose_threshold(collection, search.rule, search.fusion)
    return BatchResponse(request, Identifying(pipeline, gallery, search, pipeline.queue.share_places()))


@router.post(
    "/people/batch",
    dependencies=[WRITE],
    status_code=200,  # FastAPI cannot infer the status from BatchResponse
    response_class=BatchResponse,
    openapi_extra=document_batch(
        EnrollEntry, Enrolling.media_types, {"id": "1", "person_id": "ada", "image": examples.PHOTO}
    ),
    responses=stream(BatchEnrolled, examples.BATCH_ENROLLED, *BATCH_PROBLEMS),
)
async def enroll_batch(
    request: Request,
    collection: Collection,
    options: Annotated[EnrollOptions, Query()],
    pipeline: Pipeline,
    gallery: Gallery,
    idempotency_key: IdempotencyKey = None,
) -> BatchResponse:
    """Enrol many people by a photo or an embedding each; a known `person_id` gets one more face.

    What is answered is on the disk. With an Idempotency-Key a retry of all or of a part enrols nobody twice;
    the ids of the entries must differ then.
    """
    return BatchResponse(request, Enrolling(pipeline, gallery, collection.name, options, idempotency_key))
