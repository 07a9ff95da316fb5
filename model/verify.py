"""Is this the same face? A photo against another photo, or against an enrolled person."""

from collections.abc import Mapping
from dataclasses import dataclass

from sameface.model.decision.similarity import measure_similarity
from sameface.model.decision.thresholds import AT_OWN_RATE, Rule
from sameface.model.faces import EmbeddedFace, Embedding, Face, Photo, Value
from sameface.model.gallery.gallery import Gallery
from sameface.model.pipeline import PhotoFaces, Pipeline
from sameface.model.store.records import Collection


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
    extrapolated: bool
    calibration: str | None
    model: str
    probe: ComparedPhoto
    reference: ComparedPhoto | ComparedPerson
    timings_ms: dict[str, float]


async def verify(pipeline: Pipeline, gallery: Gallery, request: VerifyRequest) -> Decision:
    """Whether the probe shows the person of the reference; two photos are worked on at the same time."""
    stopwatch = pipeline.start_stopwatch()
    photos, calibration = {"probe": request.probe}, None
    enrolled: dict[str, Embedding] = {}
    if isinstance(request.reference, EnrolledPerson):
        collection, enrolled = await gallery.readers.run(find_enrolled, gallery, request.reference)
        calibration = collection.calibration
    else:
        photos["reference"] = request.reference
    threshold = pipeline.thresholds.for_pair(
        request.rule, calibration=calibration, faces=max(1, len(enrolled))
    )

    def embed(photo: tuple[str, Photo]) -> PhotoFaces[EmbeddedFace]:
        name, content = photo
        return pipeline.embed_one_face(content, request.faces, request.min_quality, name=name)

    found = await pipeline.queue.run_all(embed, list(photos.items()))
    compared = [ComparedPhoto(photo.faces_found, photo.faces[0].to_face()) for photo in found]
    probe = found[0].faces[0].embedding
    reference: ComparedPhoto | ComparedPerson
    if isinstance(request.reference, EnrolledPerson):
        similarity, face_id = find_closest(probe, enrolled)
        reference = ComparedPerson(request.reference.person_id, face_id)
    else:
        similarity, reference = measure_similarity(probe, found[1].faces[0].embedding), compared[1]
    pipeline.observer.similarity("verify", similarity)
    judgement = threshold.judge(similarity)
    return Decision(
        same_person=judgement.same_person,
        similarity=similarity,
        threshold=threshold.value,
        target_fmr=threshold.target,
        estimated_fmr=judgement.estimated_fmr,
        extrapolated=judgement.extrapolated,
        calibration=threshold.calibration_name,
        model=pipeline.embedder.bundle.contract.name,
        probe=compared[0],
        reference=reference,
        timings_ms=stopwatch.milliseconds(*(photo.stopwatch for photo in found)),
    )


def find_enrolled(gallery: Gallery, reference: EnrolledPerson) -> tuple[Collection, dict[str, Embedding]]:
    """The collection of an enrolled person, and the embeddings of the person's faces by face id."""
    collection = gallery.get_collection(reference.collection)
    return collection, gallery.get_embeddings(collection, reference.person_id)


def find_closest(probe: Embedding, enrolled: Mapping[str, Embedding]) -> tuple[float, str]:
    """The similarity and the id of the enrolled face that is most similar to the probe."""
    return max((measure_similarity(probe, face), face_id) for face_id, face in enrolled.items())
