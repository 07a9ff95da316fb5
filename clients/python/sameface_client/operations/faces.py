"""The calls about photos, and about the server as a whole: its collections, networks and audit."""

from datetime import datetime

from sameface_client.answers import (
    AuditEntry,
    Calibration,
    CollectionDescription,
    Decision,
    Detection,
    LoadedModel,
    PhotoEmbeddings,
)
from sameface_client.operations.fields import PAGE, check_id, to_texts
from sameface_client.pages import AuditPage, CalibrationPage, CollectionPage, ModelPage
from sameface_client.photos import AnyPhoto, OneFace, WhichFaces, to_file
from sameface_client.requests import Request, Steps
from sameface_client.values import read


class FacesOperations:
    """What needs no collection."""

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
    ) -> Steps[Decision]:
        """Whether two photos show the same person."""
        form = to_texts(
            target_fmr=target_fmr,
            threshold=threshold,
            extrapolate=extrapolate,
            faces=faces,
            min_quality=min_quality,
        )
        files = [("probe", to_file(probe)), ("reference", to_file(reference))]
        return read(Decision, (yield Request("POST", "/v1/verify", form=form, files=files)))

    def detect(self, photo: AnyPhoto, *, faces: WhichFaces = "all") -> Steps[Detection]:
        """The faces in a photo: boxes, landmarks and quality."""
        files = [("image", to_file(photo))]
        return read(Detection, (yield Request("POST", "/v1/detect", form={"faces": faces}, files=files)))

    def embed(self, photo: AnyPhoto, *, faces: WhichFaces = "all") -> Steps[PhotoEmbeddings]:
        """The faces in a photo with their unit embeddings."""
        form, files = {"faces": faces, "encoding": "base64"}, [("image", to_file(photo))]
        return read(PhotoEmbeddings, (yield Request("POST", "/v1/embed", form=form, files=files)))

    def collections(self) -> Steps[list[CollectionDescription]]:
        """All collections by name, with their numbers of people and faces."""
        found: list[CollectionDescription] = []
        cursor: str | None = ""
        while cursor is not None:
            query = to_texts(limit=PAGE, cursor=cursor)
            page = read(CollectionPage, (yield Request("GET", "/v1/collections", query=query)))
            found += page.items
            cursor = page.next_cursor
        return found

    def models(self) -> Steps[list[LoadedModel]]:
        """The networks that the server runs, with their licence, hash and device."""
        return read(ModelPage, (yield Request("GET", "/v1/models"))).items

    def calibrations(self) -> Steps[list[Calibration]]:
        """What the recogniser is calibrated on, and the error rates that its thresholds have there."""
        return read(CalibrationPage, (yield Request("GET", "/v1/calibrations"))).items

    def audit(
        self,
        cursor: str,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        caller: str | None = None,
        collection: str | None = None,
        person_id: str | None = None,
        request_id: str | None = None,
    ) -> Steps[AuditPage]:
        """The entries of the audit with their reviews, newest first, a page at a time."""
        query = to_texts(
            since=since.astimezone().isoformat() if since else None,
            until=until.astimezone().isoformat() if until else None,
            caller=caller,
            collection=collection,
            person_id=person_id,
            request_id=request_id,
            limit=PAGE,
            cursor=cursor,
        )
        return read(AuditPage, (yield Request("GET", "/v1/audit", query=query)))

    def review(self, entry_id: str, *, reviewer: str, confirmed: bool) -> Steps[AuditEntry]:
        """Write down that `reviewer` confirmed or rejected a decision that a server made."""
        sent = {"reviewer": check_id(reviewer), "confirmed": confirmed}
        path = f"/v1/audit/{check_id(entry_id)}/review"
        return read(AuditEntry, (yield Request("POST", path, json=sent, repeatable=False)))
