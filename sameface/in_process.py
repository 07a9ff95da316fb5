"""`sameface.open()`: everything that the server does with faces, in this process and without HTTP."""

import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Literal, Self

from sameface.collection import Collection
from sameface.engine import Engine
from sameface.listings import AuditEntry, CollectionDescription
from sameface.model.access.audit.reviews import read_audit, review_entry
from sameface.model.data_folder import DEFAULT_DATA, DataFolder, MilvusAddress
from sameface.model.decision.thresholds import TARGET_FMR, TARGET_FPIR, Rule
from sameface.model.pipeline import Detection, PhotoEmbeddings, PipelineOptions
from sameface.model.runtime.precision.choice import Precision
from sameface.model.store.access.audit import Wanted
from sameface.model.verify import Decision, VerifyRequest, verify
from sameface.photos import AnyPhoto, OneFace, WhichFaces, to_photo

ENTRIES_AT_ONCE = 1000
ENDLESS = 1_000_000  # photos that may wait: callers in this process wait, and none is refused


def open_faces(
    data: str | os.PathLike[str] = DEFAULT_DATA,
    *,
    database: str | None = None,
    milvus_uri: str | None = None,
    milvus_token: str | None = None,
    recognizer: str | os.PathLike[str] | None = None,
    detector: str | os.PathLike[str] | None = None,
    device: Literal["auto", "cpu", "gpu"] = "auto",
    precision: Literal["auto", "exact", "bf16"] = "auto",
    precision_faces: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    calibration: str | None = None,
    target_fmr: float = TARGET_FMR,
    target_fpir: float = TARGET_FPIR,
) -> "Faces":
    """Open a data folder; the networks are loaded by the first call that needs them.

    `database` is the URL of a gallery in PostgreSQL; without it, the gallery is a file in the data folder.
    `milvus_uri` is the address of Milvus, which then searches instead of FAISS in this process.
    `recognizer` and `detector` are each the name of a bundle in the data folder, or the folder of a bundle;
    `precision_faces` is a folder of aligned crops that prove a lower precision, instead of drawn faces;
    `calibration`, `target_fmr` and `target_fpir` are the defaults of decisions, as in the server's settings.
    """
    milvus = MilvusAddress(milvus_uri, milvus_token) if milvus_uri else None
    folder = DataFolder(Path(data), database, milvus)
    options = PipelineOptions.in_folder(
        folder,
        recognizer,
        detector,
        device=device,
        precision=Precision(precision, Path(precision_faces).expanduser() if precision_faces else None),
        queue=ENDLESS,
        calibration=calibration,
        target_fmr=target_fmr,
        target_fpir=target_fpir,
        **({"threads": threads} if threads else {}),
    )
    return Faces(Engine(folder, options))


class Faces:
    """Verifies, detects and embeds faces, and opens collections; safe to use from any number of threads."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the networks and the gallery."""
        self.engine.close()

    def verify(
        self,
        probe: AnyPhoto,
        reference: AnyPhoto,
        *,
        target_fmr: float | None = None,
        threshold: float | None = None,
        extrapolate: bool = False,
        faces: OneFace = "prominent",
        min_quality: float = 0.0,
    ) -> Decision:
        """Whether two photos show the same person."""
        request = VerifyRequest(
            probe=to_photo(probe),
            reference=to_photo(reference),
            rule=Rule(threshold, target_fmr, extrapolate),
            faces=faces,
            min_quality=min_quality,
        )
        return self.engine.run(verify(self.engine.pipeline, self.engine.gallery, request))

    def detect(self, photo: AnyPhoto, *, faces: WhichFaces = "all") -> Detection:
        """The faces in a photo: boxes, landmarks and quality."""
        return self.engine.run(self.engine.pipeline.detect(to_photo(photo), faces))

    def embed(self, photo: AnyPhoto, *, faces: WhichFaces = "all") -> PhotoEmbeddings:
        """The faces in a photo with their unit embeddings."""
        return self.engine.run(self.engine.pipeline.embed(to_photo(photo), faces))

    def collection(self, name: str, *, store_crops: bool = False) -> Collection:
        """The collection of this name; the first enrolment creates it, with this `store_crops`."""
        return Collection(self.engine, name, store_crops=store_crops)

    def audit(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        caller: str | None = None,
        collection: str | None = None,
        person_id: str | None = None,
        request_id: str | None = None,
    ) -> Iterator[AuditEntry]:
        """Yield the entries of the audit with their reviews, newest first."""
        wanted = Wanted(
            since=since.timestamp() if since else None,
            until=until.timestamp() if until else None,
            caller=caller,
            collection=collection,
            person_id=person_id,
            request_id=request_id,
        )
        before = None
        while page := read_audit(self.engine.people.store, wanted, ENTRIES_AT_ONCE, before):
            yield from map(AuditEntry.of, page)
            before = page[-1].stored.key

    def review(self, entry_id: str, *, reviewer: str, confirmed: bool) -> AuditEntry:
        """Write down that `reviewer` confirmed or rejected a decision that a server made."""
        store = self.engine.people.store
        return AuditEntry.of(review_entry(store, entry_id, reviewer, confirmed=confirmed))

    def collections(self) -> list[CollectionDescription]:
        """All collections by name, with their numbers of people and faces."""
        found = self.engine.people.list_collections()
        return [CollectionDescription.of(each, self.engine.index_kind(each)) for each in found]
