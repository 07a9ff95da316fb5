"""Who is this? Photos and embeddings against the people of a collection."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sameface.model.decision.thresholds import AT_ANY_SIZE, Rule, Threshold
from sameface.model.errors import NoFaceFound, SamefaceError
from sameface.model.faces import EmbeddedFace, Embedding, Face, Photo, Value
from sameface.model.gallery.gallery import Candidate, Gallery
from sameface.model.observer import Stopwatch
from sameface.model.pipeline import Pipeline
from sameface.model.store.audit import Entry
from sameface.model.store.records import Collection

Probe: TypeAlias = Photo | Embedding
Faces: TypeAlias = Sequence[EmbeddedFace | Embedding]  # the faces of one probe
EmbedAll: TypeAlias = Callable[
    [Callable[[Photo], Faces | SamefaceError], Sequence[Photo]], Awaitable[list[Faces | SamefaceError]]
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """Where and how to search, and what counts as a match."""

    collection: str
    limit: int = 5
    faces: str = "all"
    fusion: str = "max"
    rule: Rule = AT_ANY_SIZE


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentifyRequest(SearchOptions):
    """A photo or an embedding to search for."""

    probe: Probe


@dataclass(frozen=True, slots=True)
class IdentifiedFace(Value):
    """One face of a probe, its match if there is one, and the best candidates."""

    face: Face | None  # None where an embedding was sent
    normalised: bool  # the embedding was sent at another length than 1
    match: Candidate | None
    candidates: list[Candidate]


@dataclass(frozen=True, slots=True)
class Identification(Value):
    """The answer to "who is this?", with the threshold, the calibration and the gallery's size behind it."""

    collection: str
    gallery_size: int
    gallery_faces: int
    threshold: float
    target_fpir: float | None
    extrapolated: bool
    calibration: str | None
    model: str
    results: list[IdentifiedFace]
    timings_ms: dict[str, float]


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """The result of one search: collection, threshold, and per probe the identified faces or an error."""

    collection: Collection
    threshold: Threshold
    probes: list[list[IdentifiedFace] | SamefaceError]


async def identify(pipeline: Pipeline, gallery: Gallery, request: IdentifyRequest) -> Identification:
    """Search a collection for every face of a photo, or for an embedding; raises if the photo has no face."""
    stopwatch = pipeline.start_stopwatch()
    outcome = await search(pipeline, gallery, [request.probe], request, pipeline.queue.run_all, stopwatch)
    [results] = outcome.probes
    if isinstance(results, SamefaceError):
        raise results
    collection, threshold = outcome.collection, outcome.threshold
    return Identification(
        collection=collection.name,
        gallery_size=collection.people,
        gallery_faces=collection.faces,
        threshold=threshold.value,
        target_fpir=threshold.target,
        extrapolated=threshold.beyond,
        calibration=threshold.calibration_name,
        model=gallery.bundle.contract.name,
        results=results,
        timings_ms=stopwatch.milliseconds(),
    )


async def identify_many(
    pipeline: Pipeline,
    gallery: Gallery,
    probes: Sequence[Probe | SamefaceError],
    options: SearchOptions,
) -> list[list[IdentifiedFace] | SamefaceError]:
    """For each probe its identified faces or its error; an error among `probes` is returned in its place.

    Photos wait for free places in the work queue.
    """
    try:
        outcome = await search(pipeline, gallery, probes, options, pipeline.queue.run_in_turn)
    except SamefaceError as error:  # the collection was deleted meanwhile
        return [probe if isinstance(probe, SamefaceError) else error for probe in probes]
    return outcome.probes


async def search(
    pipeline: Pipeline,
    gallery: Gallery,
    probes: Sequence[Probe | SamefaceError],
    options: SearchOptions,
    embed_all: EmbedAll,
    stopwatch: Stopwatch | None = None,
) -> SearchOutcome:
    """Embed the photos among the probes with `embed_all`, then search all faces in one batch.

    `stopwatch` collects the times of all stages; without one, only the observer sees them.
    """

    def embed(photo: Photo) -> Faces | SamefaceError:
        try:
            found = pipeline.embed_faces(photo, options.faces, stopwatch).faces
        except SamefaceError as error:
            return error
        return found or NoFaceFound("No face was found in the photo.", faces_found=0)

    photos = [probe for probe in probes if not isinstance(probe, Embedding | SamefaceError)]
    embedded = iter(await embed_all(embed, photos) if photos else ())
    faces: list[Faces | SamefaceError] = []
    for probe in probes:
        if isinstance(probe, SamefaceError):
            faces.append(probe)
        else:
            faces.append([probe] if isinstance(probe, Embedding) else next(embedded))
    return await gallery.searchers.run(
        search_faces, gallery, faces, options, stopwatch or pipeline.start_stopwatch()
    )


def search_faces(
    gallery: Gallery, probes: Sequence[Faces | SamefaceError], options: SearchOptions, stopwatch: Stopwatch
) -> SearchOutcome:
    """Search the faces of all probes in one batch, at the current revision of the collection."""
    collection = gallery.get_collection(options.collection)
    threshold = gallery.choose_threshold(collection, options.rule, options.fusion)
    everyone = [face for faces in probes if not isinstance(faces, SamefaceError) for face in faces]
    embeddings = [face.embedding if isinstance(face, EmbeddedFace) else face for face in everyone]
    with stopwatch.stage("search"):
        found = gallery.search(collection, embeddings, options.limit, options.fusion)
    for candidates in found:
        if candidates:
            stopwatch.observer.similarity("identify", candidates[0].similarity)
    decided = list(map(decide, everyone, found, [threshold.value] * len(everyone)))
    if gallery.decisions:
        gallery.decisions.record(
            [describe_decision(face, collection, threshold, stopwatch.started_at) for face in decided]
        )
    results = iter(decided)
    return SearchOutcome(
        collection,
        threshold,
        [faces if isinstance(faces, SamefaceError) else [next(results) for _ in faces] for faces in probes],
    )


def describe_decision(
    face: IdentifiedFace, collection: Collection, threshold: Threshold, started_at: float
) -> Entry:
    """The entry of the audit for one face of a probe: the match that was found, or the closest similarity."""
    match = face.match
    return Entry.about(
        collection,
        "identify",
        outcome="match" if match else "unknown",
        person_id=match.person_id if match else None,
        similarity=face.candidates[0].similarity if face.candidates else None,
        threshold=threshold.value,
        started_at=started_at,
        details={"face_ids": [match.face_id], "reviewers": collection.reviewers} if match else {},
    )


def decide(face: EmbeddedFace | Embedding, candidates: list[Candidate], threshold: float) -> IdentifiedFace:
    """The face with its candidates; the first one is its match if its similarity reaches `threshold`."""
    return IdentifiedFace(
        face=face.to_face() if isinstance(face, EmbeddedFace) else None,
        normalised=isinstance(face, Embedding) and face.normalised,
        match=candidates[0] if candidates and candidates[0].similarity >= threshold else None,
        candidates=candidates,
    )
