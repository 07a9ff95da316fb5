"""Is this the same face? A photo against another photo or an enrolled person, embeddings against a face."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sameface.model.decision.similarity import measure_similarity
from sameface.model.decision.thresholds import AT_OWN_RATE, EXTRAPOLATING, Judgement, Rule, Threshold
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareRequest:
    """A known face, and the probes to compare with it."""

    known: Embedding
    probes: Sequence[Embedding]
    collection: Collection | None = None  # whose calibration decides
    owner: FaceOwner | None = None  # of the known face, if it is enrolled in the collection


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A known face compared with probes: each similarity, the threshold for them, and whose face it is."""

    threshold: Threshold
    similarities: Sequence[float]
    collection: Collection | None = None
    known: ComparedPerson | None = None  # enrolled in the collection


async def verify(pipeline: Pipeline, gallery: Gallery, request: VerifyRequest) -> Decision:
    """Whether the probe shows the person of the reference, another photo or an enrolled person."""
    stopwatch = pipeline.start_stopwatch()
    collection: Collection | None = None
    known: ComparedPerson | None = None
    if isinstance(request.reference, EnrolledPerson):
        found, enrolled = await gallery.readers.run(find_enrolled, gallery, request.reference)
        collection = found
        threshold = pipeline.thresholds.for_pair(
            request.rule, calibration=collection.calibration, faces=len(enrolled)
        )
        photos = await embed_photos(pipeline, request, probe=request.probe)
        similarity, face_id = find_closest(photos[0].faces[0].embedding, enrolled)
        known = ComparedPerson(request.reference.person_id, face_id)
    else:
        threshold = pipeline.thresholds.for_pair(request.rule)
        photos = await embed_photos(pipeline, request, probe=request.probe, reference=request.reference)
        similarity = measure_similarity(*(photo.faces[0].embedding for photo in photos))
    comparison = Comparison(
        threshold=threshold, similarities=[similarity], collection=collection, known=known
    )
    [judgement] = judge(pipeline, gallery, comparison, stopwatch)
    return Decision(
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
        reference=known or to_compared(photos[1]),
        timings_ms=stopwatch.milliseconds(*(photo.stopwatch for photo in photos)),
    )


def compare(pipeline: Pipeline, gallery: Gallery, request: CompareRequest) -> Comparison:
    """The similarity of each probe to the known face, and the threshold for such a pair."""
    stopwatch = pipeline.start_stopwatch()
    collection, owner = request.collection, request.owner
    calibration = collection.calibration if collection else None
    comparison = Comparison(
        threshold=pipeline.thresholds.for_pair(EXTRAPOLATING, calibration=calibration),
        similarities=[measure_similarity(probe, request.known) for probe in request.probes],
        collection=collection,
        known=ComparedPerson(owner.person_id, owner.face_id) if owner else None,
    )
    judge(pipeline, gallery, comparison, stopwatch)
    return comparison


def judge(
    pipeline: Pipeline, gallery: Gallery, comparison: Comparison, stopwatch: Stopwatch
) -> list[Judgement]:
    """The judgement of each similarity, of which the observer and the audit are told."""
    judgements = []
    for similarity in comparison.similarities:
        pipeline.observer.similarity("verify", similarity)
        judgements.append(comparison.threshold.judge(similarity))
    if gallery.decisions:
        model = pipeline.embedder.bundle.contract.name
        entries = describe_decisions(comparison, judgements, model, stopwatch.started_at)
        gallery.decisions.record([entry.to_columns() for entry in entries])
    return judgements


def describe_decisions(
    comparison: Comparison, judgements: Sequence[Judgement], model: str, started_at: float
) -> list[Entry]:
    """The entries of the audit, one per similarity, about an enrolled person if the known face is theirs."""
    about: dict[str, Any] = {"model": model}
    if known := comparison.known:
        about |= {"person_id": known.person_id, "details": {"face_ids": [known.face_id]}}
    if collection := comparison.collection:
        about |= {"collection": collection.name, "revision": collection.revision, "model": collection.bundle}
    return [
        Entry(
            action="verify",
            outcome="same_person" if judgement.same_person else "different_people",
            similarity=similarity,
            threshold=comparison.threshold.value,
            started_at=started_at,
            **about,
        )
        for similarity, judgement in zip(comparison.similarities, judgements, strict=True)
    ]


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
