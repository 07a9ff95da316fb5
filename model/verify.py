"""Is this the same face? A photo against another photo, or against an enrolled person."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sameface.model.decision.similarity import measure_similarity
from sameface.model.decision.thresholds import AT_ANY_SIZE, AT_OWN_RATE, Rule, Threshold
from sameface.model.faces import EmbeddedFace, Embedding, Face, Photo, Value
from sameface.model.gallery.gallery import Gallery
from sameface.model.observer import Stopwatch
from sameface.model.pipeline import PhotoFaces, Pipeline
from sameface.model.store.access.audit import Entry
from sameface.model.store.records import Collection, FaceOwner


@dataclass(frozen=True, slots=True)
class EnrolledPerson:
    """A person of a collection, as the reference of a comparison."""

    collection: str
    person_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyRequest:
    """Two photos, or a photo and an enrolled person, and how to decide."""

    probe: Photo
    reference: Photo | EnrolledPerson
    rule: Rule = AT_OWN_RATE
    faces: str = "prominent"
    min_quality: float = 0.0


@dataclass(frozen=True, slots=True)
class ComparedPhoto(Value):
    """A photo of the comparison: the number of faces found, and the face that was compared."""

    faces_found: int
    face: Face


@dataclass(frozen=True, slots=True)
class ComparedPerson(Value):
    """An enrolled person as the reference, and the face that was closest to the probe."""

    person_id: str
    face_id: str


@dataclass(frozen=True, slots=True)
class Decision(Value):
    """The answer to "is this the same face?", with the similarity, threshold and calibration behind it."""

    same_person: bool
    similarity: float
    threshold: float
    target_fmr: float | None
    estimated_fmr: float | None
    estimated_fmr_is_bound: bool
    extrapolated: bool
    calibration: str | None
    model: str
    probe: ComparedPhoto
    reference: ComparedPhoto | ComparedPerson
    timings_ms: dict[str, float]


async def verify(pipeline: Pipeline, gallery: Gallery, request: VerifyRequest) -> Decision:
    """Whether the probe shows the person of the reference, another photo or an enrolled person."""
    stopwatch = pipeline.start_stopwatch()
    collection: Collection | None = None
    reference: ComparedPhoto | ComparedPerson
    if isinstance(request.reference, EnrolledPerson):
        found, enrolled = await gallery.readers.run(find_enrolled, gallery, request.reference)
        collection = found
        threshold = pipeline.thresholds.for_pair(
            request.rule, calibration=collection.calibration, faces=len(enrolled)
        )
        photos = await embed_photos(pipeline, request, probe=request.probe)
        similarity, face_id = find_closest(photos[0].faces[0].embedding, enrolled)
        reference = ComparedPerson(request.reference.person_id, face_id)
    else:
        threshold = pipeline.thresholds.for_pair(request.rule)
        photos = await embed_photos(pipeline, request, probe=request.probe, reference=request.reference)
        similarity = measure_similarity(*(photo.faces[0].embedding for photo in photos))
        reference = to_compared(photos[1])
    pipeline.observer.similarity("verify", similarity)
    judgement = threshold.judge(similarity)
    decision = Decision(
        same_person=judgement.same_person,
        similarity=similarity,
        threshold=threshold.value,
        target_fmr=threshold.target,
        estimated_fmr=judgement.estimated_fmr,
        estimated_fmr_is_bound=judgement.estimated_fmr_is_bound,
        extrapolated=judgement.extrapolated,
        calibration=threshold.calibration_name,
        model=pipeline.embedder.bundle.contract.name,
        probe=to_compared(photos[0]),
        reference=reference,
        timings_ms=stopwatch.milliseconds(*(photo.stopwatch for photo in photos)),
    )
    if gallery.decisions:
        entry = describe_decision(decision, collection, stopwatch)
        gallery.decisions.record([entry.to_columns()])
    return decision


def describe_decision(decision: Decision, collection: Collection | None, stopwatch: Stopwatch) -> Entry:
    """The entry of the audit for a decision, about an enrolled person if there is a collection."""
    values: dict[str, Any] = {
        "outcome": name_outcome(decision.same_person),
        "similarity": decision.similarity,
        "threshold": decision.threshold,
        "started_at": stopwatch.started_at,
    }
    if collection is None or not isinstance(decision.reference, ComparedPerson):
        return Entry(action="verify", model=decision.model, **values)
    found = {"face_ids": [decision.reference.face_id]}
    return Entry.about(collection, "verify", person_id=decision.reference.person_id, details=found, **values)


def compare_with_face(
    pipeline: Pipeline,
    gallery: Gallery,
    collection: Collection | None,
    known: Embedding,
    probes: Sequence[Embedding],
    owner: FaceOwner | None = None,
) -> tuple[Threshold, list[float]]:
    """The similarity of each probe to one known face, and the threshold for such a pair.

    Each comparison is a decision in the audit, about the enrolled `owner` of the face if there is one, and in
    the `collection` if that is known.
    """
    stopwatch = pipeline.start_stopwatch()
    calibration = collection.calibration if collection else None
    threshold = pipeline.thresholds.for_pair(AT_ANY_SIZE, calibration=calibration)
    similarities = [measure_similarity(probe, known) for probe in probes]
    about: dict[str, Any] = {}
    if owner:
        about = {"person_id": owner.person_id, "details": {"face_ids": [owner.face_id]}}
    entries = []
    for similarity in similarities:
        pipeline.observer.similarity("verify", similarity)
        values: dict[str, Any] = {
            "outcome": name_outcome(similarity >= threshold.value),
            "similarity": similarity,
            "threshold": threshold.value,
            "started_at": stopwatch.started_at,
        }
        if collection:
            entries.append(Entry.about(collection, "verify", **about, **values))
        else:
            entries.append(Entry(action="verify", model=pipeline.embedder.bundle.contract.name, **values))
    if gallery.decisions:
        gallery.decisions.record([entry.to_columns() for entry in entries])
    return threshold, similarities


def name_outcome(same_person: bool) -> str:
    """A decision as the audit calls it."""
    return "same_person" if same_person else "different_people"


async def embed_photos(
    pipeline: Pipeline, request: VerifyRequest, **photos: Photo
) -> list[PhotoFaces[EmbeddedFace]]:
    """The one face of each photo, all photos at the same time; an error carries the photo's name."""

    def embed(photo: tuple[str, Photo]) -> PhotoFaces[EmbeddedFace]:
        name, content = photo
        return pipeline.embed_one_face(content, request.faces, request.min_quality, name=name)

    return await pipeline.queue.run_all(embed, list(photos.items()))


def to_compared(photo: PhotoFaces[EmbeddedFace]) -> ComparedPhoto:
    """A photo as the decision shows it."""
    return ComparedPhoto(photo.faces_found, photo.faces[0].to_face())


def find_enrolled(gallery: Gallery, reference: EnrolledPerson) -> tuple[Collection, dict[str, Embedding]]:
    """The collection of an enrolled person, and the embeddings of the person's faces by face id."""
    collection = gallery.get_collection(reference.collection)
    return collection, gallery.get_embeddings(collection, reference.person_id)


def find_closest(probe: Embedding, enrolled: Mapping[str, Embedding]) -> tuple[float, str]:
    """The similarity and the id of the enrolled face that is most similar to the probe."""
    return max((measure_similarity(probe, face), face_id) for face_id, face in enrolled.items())
