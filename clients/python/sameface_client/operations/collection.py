"""The calls about one collection: enrol, identify, verify, and look after its people."""

import json
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from enum import Enum
from typing import Any, Literal

from sameface_client.answers import (
    BatchEnrolled,
    BatchIdentified,
    CollectionDescription,
    Decision,
    Enrollment,
    Identification,
    Person,
)
from sameface_client.batches import Batch, EnrollEntry, enroll_batch, identify_batch
from sameface_client.errors import AlreadyExists, CollectionNotFound, PersonNotFound
from sameface_client.operations.fields import PAGE, check_id, check_text, drop_missing, to_json, to_texts
from sameface_client.pages import PersonPage
from sameface_client.photos import (
    AnyEmbedding,
    AnyPhoto,
    AnyProbe,
    OneFace,
    WhichFaces,
    encode_embedding,
    is_embedding,
    to_file,
)
from sameface_client.requests import Body, Request, Steps
from sameface_client.values import read


class Kept(Enum):
    """The default of what `update` leaves as it is, because None is a name too."""

    KEPT = "kept"


KEPT = Kept.KEPT


class CollectionOperations:
    """What is done with one collection; the first enrolment makes it, with this `store_crops`."""

    def __init__(self, name: str, *, store_crops: bool) -> None:
        self.name = name
        self.store_crops = store_crops

    @property
    def path(self) -> str:
        """The collection's address."""
        return f"/v1/collections/{check_id(self.name)}"

    def person_path(self, person_id: str) -> str:
        """A person's address."""
        return f"{self.path}/people/{check_id(person_id)}"

    def enroll(
        self,
        person_id: str | None,
        photos: Sequence[AnyPhoto] = (),
        *,
        name: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        embeddings: Sequence[AnyEmbedding] = (),
        faces: OneFace = "prominent",
        min_quality: float = 0.0,
    ) -> Steps[Enrollment]:
        """Enrol a person by photos or embeddings; a known id raises `already_exists`, None makes an id."""
        who = to_texts(
            person_id=person_id,
            name=name,
            metadata=to_json(metadata or {}),
            faces=faces,
            min_quality=min_quality,
        )
        request = enrolment(f"{self.path}/people", who, photos, embeddings)
        return read(Enrollment, (yield from self.send_or_create(request)))

    def add_faces(
        self,
        person_id: str,
        photos: Sequence[AnyPhoto] = (),
        *,
        embeddings: Sequence[AnyEmbedding] = (),
        faces: OneFace = "prominent",
        min_quality: float = 0.0,
    ) -> Steps[Enrollment]:
        """Add faces to an enrolled person; an unknown id raises `person_not_found`."""
        options = to_texts(faces=faces, min_quality=min_quality)
        path = f"{self.person_path(person_id)}/faces"
        return read(Enrollment, (yield enrolment(path, options, photos, embeddings)))

    def enroll_or_add(
        self, person_id: str, photos: Sequence[AnyPhoto], *, name: str | None = None
    ) -> Steps[Enrollment]:
        """Enrol a person by photos, or add faces to a known `person_id`, who keeps the name they have."""
        try:
            yield Request("GET", self.person_path(person_id))
        except (CollectionNotFound, PersonNotFound):
            return (yield from self.enroll(person_id, photos, name=name))
        return (yield from self.add_faces(person_id, photos))

    def identify(
        self,
        probe: AnyProbe,
        *,
        limit: int = 5,
        faces: WhichFaces = "all",
        fusion: Literal["max", "mean"] = "max",
        exact: bool = False,
        target_fpir: float | None = None,
        threshold: float | None = None,
        extrapolate: bool = True,
    ) -> Steps[Identification]:
        """Identify the faces in a photo, or an embedding, among the people of the collection."""
        options = {
            "limit": limit,
            "faces": faces,
            "fusion": fusion,
            "exact": exact,
            "target_fpir": target_fpir,
            "threshold": threshold,
            "extrapolate": extrapolate,
        }
        path = f"{self.path}/identify"
        if is_embedding(probe):
            sent = {"embedding": encode_embedding(probe), **drop_missing(options)}  # type: ignore[arg-type]
            request = Request("POST", path, json=sent)
        else:
            files = [("image", to_file(probe))]  # type: ignore[arg-type]
            request = Request("POST", path, form=to_texts(**options), files=files)
        return read(Identification, (yield request))

    def identify_many(
        self,
        *,
        limit: int = 5,
        faces: WhichFaces = "all",
        fusion: Literal["max", "mean"] = "max",
        exact: bool = False,
        target_fpir: float | None = None,
        threshold: float | None = None,
        extrapolate: bool = True,
    ) -> Batch[tuple[str, AnyProbe], BatchIdentified]:
        """Identify pairs of an id and a probe as they come; yields one answer per pair, in their order."""
        query = to_texts(
            limit=limit,
            faces=faces,
            fusion=fusion,
            exact=exact,
            target_fpir=target_fpir,
            threshold=threshold,
            extrapolate=extrapolate,
        )

        def send(body: Body) -> Steps[bytes]:
            return (yield Request("POST", f"{self.path}/identify/batch", query=query, body=body))

        return identify_batch(send)

    def enroll_many(
        self, *, faces: OneFace = "prominent", min_quality: float = 0.0
    ) -> Batch[EnrollEntry, BatchEnrolled]:
        """Enrol entries as they come; yields one answer per entry, in their order, once it is on the disk."""
        query = to_texts(faces=faces, min_quality=min_quality)

        def send(body: Body) -> Steps[bytes]:
            path, key = f"{self.path}/people/batch", make_key()
            request = Request("POST", path, query=query, body=body, idempotency_key=key)
            return (yield from self.send_or_create(request))

        return enroll_batch(send)

    def verify(
        self,
        person_id: str,
        probe: AnyPhoto,
        *,
        target_fmr: float | None = None,
        threshold: float | None = None,
        extrapolate: bool = False,
        faces: OneFace = "prominent",
        min_quality: float = 0.0,
    ) -> Steps[Decision]:
        """Whether a photo shows an enrolled person."""
        form = to_texts(
            collection=self.name,
            person_id=person_id,
            target_fmr=target_fmr,
            threshold=threshold,
            extrapolate=extrapolate,
            faces=faces,
            min_quality=min_quality,
        )
        files = [("probe", to_file(probe))]
        return read(Decision, (yield Request("POST", "/v1/verify", form=form, files=files)))

    def describe(self) -> Steps[CollectionDescription]:
        """The collection's recogniser and its numbers of people and faces, as they are now."""
        return read(CollectionDescription, (yield Request("GET", self.path)))

    def people(self, cursor: str) -> Steps[PersonPage]:
        """All people in the order of their ids, a page at a time."""
        query = to_texts(limit=PAGE, cursor=cursor)
        return read(PersonPage, (yield Request("GET", f"{self.path}/people", query=query)))

    def person(self, person_id: str) -> Steps[Person]:
        """The person of this id, with the ids of their faces."""
        return read(Person, (yield Request("GET", self.person_path(person_id))))

    def update(
        self, person_id: str, *, name: str | Kept | None = KEPT, metadata: Mapping[str, Any] | Kept = KEPT
    ) -> Steps[Person]:
        """Set a person's name, metadata or both; returns the person."""
        sent: dict[str, Any] = {} if isinstance(name, Kept) else {"name": check_text(name)}
        if not isinstance(metadata, Kept):
            sent["metadata"] = json.loads(to_json(metadata))
        return read(Person, (yield Request("PATCH", self.person_path(person_id), json=sent)))

    def forget(self, person_id: str) -> Steps[None]:
        """Delete a person; once this returns, no search finds them."""
        yield Request("DELETE", self.person_path(person_id), repeatable=False)

    def forget_face(self, person_id: str, face_id: str) -> Steps[None]:
        """Delete one face of a person."""
        path = f"{self.person_path(person_id)}/faces/{check_id(face_id)}"
        yield Request("DELETE", path, repeatable=False)

    def delete(self) -> Steps[None]:
        """Delete the collection with everybody in it."""
        yield Request("DELETE", self.path, repeatable=False)

    def send_or_create(self, request: Request) -> Steps[bytes]:
        """Send an enrolment; if there is no such collection, make it and send the enrolment again."""
        try:
            return (yield request)
        except CollectionNotFound:
            with suppress(AlreadyExists):  # somebody else has made it meanwhile, in their own way
                yield Request("PUT", self.path, json={"store_crops": self.store_crops})
            return (yield request)


def enrolment(
    path: str, form: Mapping[str, str], photos: Sequence[AnyPhoto], embeddings: Sequence[AnyEmbedding]
) -> Request:
    """The request that enrols photos and embeddings; its idempotency key makes it repeatable."""
    files = [("images", to_file(photo)) for photo in photos]
    written = json.dumps([encode_embedding(each) for each in embeddings])
    if files:
        form = {**form, "embeddings": written}
        return Request("POST", path, form=form, files=files, idempotency_key=make_key())
    sent = {**form, "embeddings": json.loads(written)}
    if "metadata" in sent:
        sent["metadata"] = json.loads(form["metadata"])
    return Request("POST", path, json=sent, idempotency_key=make_key())


def make_key() -> str:
    """A new idempotency key."""
    return uuid.uuid4().hex
