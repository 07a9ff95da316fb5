"""Who is this? Photos and embeddings against the people of a collection."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from sameface.model.decision.thresholds import AT_ANY_SIZE, Rule
from sameface.model.errors import NoFaceFound, SamefaceError
from sameface.model.faces import AlignedFace, EmbeddedFace, Embedding
from sameface.model.gallery.gallery import Candidate, Gallery
from sameface.model.observer import Stopwatch
from sameface.model.pipeline import Pipeline
from sameface.model.store.records import Collection


@dataclass(frozen=True, slots=True)
class Result:
    """One face of the probe, its match if there is one, and the best candidates."""

    face: AlignedFace | None
    normalised: bool  # the embedding was brought at another length than 1
    match: Candidate | None
    candidates: list[Candidate]


@dataclass(frozen=True, slots=True)
class Identification:
    """The answer to "who is this?", with all that it rests on."""

    collection: str
    gallery_size: int
    gallery_faces: int
    threshold: float
    target_fpir: float | None
    extrapolated: bool
    calibration: str | None
    model: str
    results: list[Result]
    timings_ms: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """How to search and what counts as a match."""

    limit: int = 5
    faces: str = "all"
    fusion: str = "max"
    rule: Rule = AT_ANY_SIZE


async def identify(
    pipeline: Pipeline, gallery: Gallery, name: str, probe: bytes | Embedding, question: Question
) -> Identification:
    """Everybody in a photo, or whoever an embedding is of, among the people of a collection as it is now.

    Either takes one place in the queue, and all that has to be asked is asked by one thread in one go.
    """
    stopwatch = pipeline.start_stopwatch()

    def look_and_search(probe: bytes | Embedding) -> Identification:
        collection = gallery.get_collection(name)
        threshold = gallery.choose_threshold(collection, question.rule, question.fusion)
        faces: Sequence[EmbeddedFace | Embedding] = (
            look_at(pipeline, probe, question, stopwatch) if isinstance(probe, bytes) else [probe]
        )
        with stopwatch.stage("search"):
            results = search(gallery, collection, faces, question, threshold.value)
        tell_similarities(pipeline, results)
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

    [found] = await pipeline.workers.run_all(look_and_search, [probe])
    return found


def look_at(
    pipeline: Pipeline, photo: bytes, question: Question, stopwatch: Stopwatch | None = None
) -> list[EmbeddedFace]:
    """The faces of a photo to identify, which must show somebody."""
    faces = pipeline.embed_faces(photo, question.faces, stopwatch).faces
    if not faces:
        raise NoFaceFound("No face was found in the photo.", faces_found=0)
    return faces


async def identify_many(
    pipeline: Pipeline,
    gallery: Gallery,
    name: str,
    probes: Sequence[bytes | Embedding | SamefaceError],
    question: Question,
) -> list[list[Result] | SamefaceError]:
    """What is known of each of many probes; one that failed, or fails here, does not fail the others.

    Photos wait for their turn in the queue, and all faces share one search of the collection as it is now.
    """

    def look(probe: bytes | Embedding | SamefaceError) -> Sequence[EmbeddedFace | Embedding] | SamefaceError:
        if not isinstance(probe, bytes):
            return probe if isinstance(probe, SamefaceError) else [probe]
        try:
            return look_at(pipeline, probe, question)
        except SamefaceError as error:
            return error

    photos = await pipeline.workers.run_in_turn(look, [probe for probe in probes if isinstance(probe, bytes)])
    seen = iter(photos)
    faces = [next(seen) if isinstance(probe, bytes) else look(probe) for probe in probes]

    def search_all() -> list[Result]:
        everyone = [face for found in faces if not isinstance(found, SamefaceError) for face in found]
        collection = gallery.get_collection(name)
        threshold = gallery.choose_threshold(collection, question.rule, question.fusion)
        with pipeline.start_stopwatch().stage("search"):
            results = search(gallery, collection, everyone, question, threshold.value)
        tell_similarities(pipeline, results)
        return results

    try:
        results = iter(await asyncio.to_thread(search_all))
    except SamefaceError as error:  # the collection was deleted meanwhile
        return [found if isinstance(found, SamefaceError) else error for found in faces]
    return [found if isinstance(found, SamefaceError) else [next(results) for _ in found] for found in faces]


def tell_similarities(pipeline: Pipeline, results: Sequence[Result]) -> None:
    """Of every face, how similar the closest person is."""
    for result in results:
        if result.candidates:
            pipeline.observer.similarity("identify", result.candidates[0].similarity)


def search(
    gallery: Gallery,
    collection: Collection,
    probes: Sequence[EmbeddedFace | Embedding],
    question: Question,
    threshold: float,
) -> list[Result]:
    """The candidates of each probe, and the first of them as its match if it passes."""
    embeddings = [probe.embedding if isinstance(probe, EmbeddedFace) else probe for probe in probes]
    found = gallery.search(collection, embeddings, question.limit, question.fusion)
    return [
        Result(
            face=probe if isinstance(probe, EmbeddedFace) else None,
            normalised=isinstance(probe, Embedding) and probe.normalised,
            match=candidates[0] if candidates and candidates[0].similarity >= threshold else None,
            candidates=candidates,
        )
        for probe, candidates in zip(probes, found, strict=True)
    ]
