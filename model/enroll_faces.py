"""Enrols every face of a photo as a person of its own, as clients of Rekognition index photos."""

import uuid
from dataclasses import dataclass, replace

from sameface.model.enroll import to_new_face
from sameface.model.faces import AlignedFace, EmbeddedFace, Face, Value
from sameface.model.gallery.gallery import Gallery
from sameface.model.photo.image import hash_photo, measure_image
from sameface.model.pipeline import PhotoFaces, Pipeline
from sameface.model.store.records import NewPerson

TOO_MANY = "too_many"  # the reason of a face beyond `most`; the others are issues of its quality


@dataclass(frozen=True, slots=True, kw_only=True)
class FacesRequest:
    """A photo whose faces are enrolled into a collection, the largest first."""

    collection: str
    photo: bytes
    most: int | None = None  # faces; None: all
    min_quality: float = 0.0
    external_id: str | None = None  # what the client calls the photo


@dataclass(frozen=True, slots=True)
class EnrolledPhoto(Value):
    """The answer of `enroll_faces`: the enrolled faces by their ids, and the others with the reasons."""

    size: tuple[int, int]
    photo: str  # the SHA-256
    model: str
    enrolled: dict[str, Face]
    left_out: list[tuple[Face, tuple[str, ...]]]


async def enroll_faces(pipeline: Pipeline, gallery: Gallery, request: FacesRequest) -> EnrolledPhoto:
    """Enrol the fit faces of a photo, all or none; a photo without a face enrols nobody."""
    collection = await gallery.readers.run(gallery.get_collection, request.collection)

    def look(photo: bytes) -> tuple[tuple[int, int], list[EmbeddedFace], list[tuple[Face, tuple[str, ...]]]]:
        found = pipeline.find_faces(photo, "all")
        fit, left_out = sort_out(pipeline, found, request)
        embedded = pipeline.add_embeddings(PhotoFaces(found.faces_found, fit, found.stopwatch)).faces
        return measure_image(photo, pipeline.options.limits), embedded, left_out

    [(size, embedded, left_out)] = await pipeline.queue.run_all(look, [request.photo])
    newcomers = [make_loner(face, size, request) for face in embedded]
    if newcomers:
        await gallery.writers.run(gallery.enroll, collection, newcomers)
    enrolled = {
        newcomer.person_id: face.to_face() for newcomer, face in zip(newcomers, embedded, strict=True)
    }
    return EnrolledPhoto(size, hash_photo(request.photo), collection.bundle, enrolled, left_out)


def sort_out(
    pipeline: Pipeline, found: PhotoFaces[AlignedFace], request: FacesRequest
) -> tuple[list[AlignedFace], list[tuple[Face, tuple[str, ...]]]]:
    """The faces to enrol, the largest first, and those to leave out, each with the reasons."""
    fit: list[AlignedFace] = []
    left_out = []
    for face in sorted(found.faces, key=lambda face: -face.box.width * face.box.height):
        quality = face.quality
        if quality.size < pipeline.options.min_face_pixels or quality.score < request.min_quality:
            left_out.append((face.to_face(), quality.issues or ("small",)))
        elif request.most is not None and len(fit) >= request.most:
            left_out.append((face.to_face(), (TOO_MANY,)))
        else:
            fit.append(face)
    return fit, left_out


def make_loner(face: EmbeddedFace, size: tuple[int, int], request: FacesRequest) -> NewPerson:
    """A new person with a single face of a photo of this `size`; person and face have the same id."""
    face_id = str(uuid.uuid4())
    details = {
        "box": face.box.divide(*size).to_dict(),
        "score": face.score,
        "external_id": request.external_id,
    }
    return NewPerson(face_id, [replace(to_new_face(face, request.photo, face_id), details=details)])
