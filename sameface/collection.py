"""A collection of people, as `sameface.open().collection(name)` gives it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any, Literal

import numpy as np

from sameface.batches import BatchEnrolled, BatchFailed, BatchIdentified, EnrollEntry, prepare_blocks
from sameface.engine import Engine
from sameface.listings import CollectionDescription, Person
from sameface.model.decision.thresholds import Rule
from sameface.model.enroll import Enrollment, EnrollRequest, enroll, enroll_many
from sameface.model.errors import InvalidArgument, SamefaceError
from sameface.model.faces import Embedding, Photo
from sameface.model.gallery.probes import Probes
from sameface.model.gallery.roster import Roster
from sameface.model.identify import Identification, IdentifyRequest, SearchOptions, identify, identify_many
from sameface.model.photo.embed import accept_embedding
from sameface.model.photo.image import hash_photo
from sameface.model.store import records
from sameface.model.verify import Decision, EnrolledPerson, VerifyRequest, verify
from sameface.photos import AnyEmbedding, AnyPhoto, AnyProbe, OneFace, WhichFaces, is_embedding, to_photo

PEOPLE_AT_ONCE = 1000


class Kept(Enum):
    """The default of what `update` leaves as it is, because None is a name too."""

    KEPT = "kept"


KEPT = Kept.KEPT


class Collection:
    """People that are searched together."""

    def __init__(self, engine: Engine, name: str, *, store_crops: bool = False) -> None:
        self.name = name
        self._engine = engine
        self._store_crops = store_crops

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
    ) -> Enrollment:
        """Enrol a person by photos or embeddings; a known id raises `already_exists`, None makes an id."""
        return self._enroll(
            person_id,
            photos,
            embeddings,
            name=to_name(name),
            metadata=to_metadata(metadata or {}),
            faces=faces,
            min_quality=min_quality,
        )

    def enroll_or_add(
        self, person_id: str, photos: Sequence[AnyPhoto], *, name: str | None = None
    ) -> Enrollment:
        """Enrol a person by photos, or add faces to a known `person_id`, who keeps the name they have."""
        return self._enroll(person_id, photos, (), name=to_name(name), may_exist=True)

    def add_faces(
        self,
        person_id: str,
        photos: Sequence[AnyPhoto] = (),
        *,
        embeddings: Sequence[AnyEmbedding] = (),
        faces: OneFace = "prominent",
        min_quality: float = 0.0,
    ) -> Enrollment:
        """Add faces to an enrolled person; an unknown id raises `person_not_found`."""
        return self._enroll(
            person_id, photos, embeddings, must_exist=True, faces=faces, min_quality=min_quality
        )

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
    ) -> Identification:
        """Identify the faces in a photo, or an embedding, among the people of the collection."""
        request = IdentifyRequest(
            collection=self.name,
            probe=self._to_probe(probe),
            limit=limit,
            faces=faces,
            fusion=fusion,
            exact=exact,
            rule=Rule(threshold, target_fpir, extrapolate),
        )
        return self._engine.run(identify(self._engine.pipeline, self._engine.gallery, request))

    def identify_many(
        self,
        probes: Iterable[tuple[str, AnyProbe]],
        *,
        limit: int = 5,
        faces: WhichFaces = "all",
        fusion: Literal["max", "mean"] = "max",
        exact: bool = False,
        target_fpir: float | None = None,
        threshold: float | None = None,
        extrapolate: bool = True,
    ) -> Iterator[BatchIdentified | BatchFailed]:
        """Identify pairs of an id and a probe as they come; yields one answer per pair, in their order."""
        options = SearchOptions(
            collection=self.name,
            limit=limit,
            faces=faces,
            fusion=fusion,
            exact=exact,
            rule=Rule(threshold, target_fpir, extrapolate),
        )
        for block in prepare_blocks(probes, lambda pair: self._to_probe(pair[1])):
            gallery = self._engine.gallery
            collection = gallery.get_collection(self.name)
            gallery.choose_threshold(collection, options.rule, options.fusion)
            options = replace(options, collection=collection)
            prepared = Probes.of([probe for _, probe in block])
            identified = self._engine.run(identify_many(self._engine.pipeline, gallery, prepared, options))
            for ((id_, _), _), answer in zip(block, identified.by_probe(), strict=True):
                if isinstance(answer, SamefaceError):
                    yield BatchFailed(id_, answer)
                else:
                    yield BatchIdentified(id_, answer)

    def enroll_many(
        self, entries: Iterable[EnrollEntry], *, faces: OneFace = "prominent", min_quality: float = 0.0
    ) -> Iterator[BatchEnrolled | BatchFailed]:
        """Enrol entries as they come; yields one answer per entry, in their order, once it is on the disk."""
        for block in prepare_blocks(entries, lambda entry: self._to_probe(entry.probe)):
            engine, collection = self._engine, self._get_or_create()
            requests = [self._to_request(*each, faces=faces, min_quality=min_quality) for each in block]
            answers = engine.run(enroll_many(engine.pipeline, engine.gallery, collection, requests))
            for (entry, _), answer in zip(block, answers, strict=True):
                if isinstance(answer, SamefaceError):
                    yield BatchFailed(entry.id, answer)
                else:
                    yield BatchEnrolled(entry.id, answer.person_id, answer.faces, answer.warnings)

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
    ) -> Decision:
        """Whether a photo shows an enrolled person."""
        request = VerifyRequest(
            probe=to_photo(probe),
            reference=EnrolledPerson(self.name, person_id),
            rule=Rule(threshold, target_fmr, extrapolate),
            faces=faces,
            min_quality=min_quality,
        )
        return self._engine.run(verify(self._engine.pipeline, self._engine.gallery, request))

    def describe(self) -> CollectionDescription:
        """The collection's recogniser and its numbers of people and faces, as they are now."""
        collection = self._stored
        return CollectionDescription.of(collection, self._engine.index_kind(collection))

    def people(self) -> Iterator[Person]:
        """Yield all people in the order of their ids."""
        collection, after = self._stored, ""
        while page := self._people.list_people(collection, PEOPLE_AT_ONCE, after):
            yield from map(Person.of, page)
            after = page[-1].person_id

    def person(self, person_id: str) -> Person:
        """The person of this id, with the ids of their faces."""
        return Person.of(self._people.get_person(self._stored, person_id))

    def update(
        self, person_id: str, *, name: str | Kept | None = KEPT, metadata: Mapping[str, Any] | Kept = KEPT
    ) -> Person:
        """Set a person's name, metadata or both; returns the person."""
        values: dict[str, Any] = {} if isinstance(name, Kept) else {"name": to_name(name)}
        if not isinstance(metadata, Kept):
            values["metadata"] = to_metadata(metadata)
        return Person.of(self._people.update_person(self._stored, person_id, values))

    def forget(self, person_id: str) -> None:
        """Delete a person; once this returns, no search finds them."""
        self._people.forget_person(self._stored, person_id)

    def forget_face(self, person_id: str, face_id: str) -> None:
        """Delete one face of a person."""
        self._people.forget_face(self._stored, person_id, face_id)

    def delete(self) -> None:
        """Delete the collection with everybody in it."""
        self._people.delete_collection(self.name)

    def find_photos(self, photos: Sequence[AnyPhoto]) -> list[list[str]]:
        """For each photo the ids of the people who were enrolled with this very photo."""
        hashes = [hash_photo(to_photo(photo)) for photo in photos]
        found = self._people.find_photos(self._stored, hashes)
        return [found.get(each, []) for each in hashes]

    @property
    def _people(self) -> Roster:
        return self._engine.people

    @property
    def _stored(self) -> records.Collection:
        return self._people.get_collection(self.name)

    def _get_or_create(self) -> records.Collection:
        return self._engine.gallery.get_or_create_collection(self.name, store_crops=self._store_crops)

    def _enroll(
        self,
        person_id: str | None,
        photos: Sequence[AnyPhoto],
        embeddings: Sequence[AnyEmbedding],
        *,
        must_exist: bool = False,
        **others: Any,
    ) -> Enrollment:
        if person_id is not None:
            records.refuse_invalid_id(person_id, "person")
        recogniser = self._engine.pipeline.embedder.bundle
        request = EnrollRequest(
            collection=self.name if must_exist else self._get_or_create(),
            person_id=person_id,
            must_exist=must_exist,
            photos=[to_photo(photo) for photo in photos],
            embeddings=[accept_embedding(recogniser, np.asarray(each), None) for each in embeddings],
            **others,
        )
        return self._engine.run(enroll(self._engine.pipeline, self._engine.gallery, request))

    def _to_request(
        self, entry: EnrollEntry, probe: Photo | Embedding | SamefaceError, **options: Any
    ) -> EnrollRequest | SamefaceError:
        """The request of an entry in a batch, or what is wrong with the entry."""
        if isinstance(probe, SamefaceError):
            return probe
        try:
            if entry.person_id is not None:
                records.refuse_invalid_id(entry.person_id, "person")
            return EnrollRequest(
                collection=self.name,
                person_id=entry.person_id,
                name=to_name(entry.name),
                metadata=to_metadata(entry.metadata),
                photos=() if isinstance(probe, Embedding) else [probe],
                embeddings=[probe] if isinstance(probe, Embedding) else (),
                may_exist=True,
                **options,
            )
        except SamefaceError as error:
            return error

    def _to_probe(self, probe: AnyProbe) -> Photo | Embedding:
        if is_embedding(probe):
            return accept_embedding(self._engine.pipeline.embedder.bundle, np.asarray(probe), None)
        return to_photo(probe)  # type: ignore[arg-type]


def to_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata as it is stored; what a request over HTTP could not hold is refused."""
    if fault := records.find_metadata_fault(dict(metadata)):
        raise InvalidArgument(f"Metadata {fault}.")
    return dict(metadata)


def to_name(name: str | None) -> str | None:
    """The name as it is stored; what a request over HTTP could not hold is refused."""
    if name is not None and not records.is_text(name, records.MAX_NAME):
        raise InvalidArgument(f"A name is valid text of at most {records.MAX_NAME} characters.")
    return name
