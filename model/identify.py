"""Who is this? A photo or an embedding against the people of a collection."""

import asyncio
from dataclasses import dataclass

from model.compare import choose_threshold
from model.errors import NoFaceFound
from model.faces import AlignedFace, EmbeddedFace, Embedding
from model.gallery import Candidate, Gallery
from model.pipeline import Pipeline
from model.records import Collection
from model.timing import Stopwatch


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
    model: str
    results: list[Result]
    timings_ms: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """How to search and what counts as a match."""

    limit: int = 5
    fusion: str = "max"
    threshold: float | None = None
    target_fpir: float | None = None


async def identify_photo(
    pipeline: Pipeline, gallery: Gallery, collection: Collection, photo: bytes, faces: str, question: Question
) -> Identification:
    """Everybody in a photo."""
    look = await pipeline.embed(photo, faces)
    if not look.faces:
        raise NoFaceFound("No face was found in the photo.", faces_found=0)
    return await asyncio.to_thread(identify, gallery, collection, look.faces, question, look.stopwatch)


async def identify_embedding(
    gallery: Gallery, collection: Collection, embedding: Embedding, question: Question
) -> Identification:
    """Whoever an embedding is of."""
    return await asyncio.to_thread(identify, gallery, collection, [embedding], question, Stopwatch())


def identify(
    gallery: Gallery,
    collection: Collection,
    probes: list[EmbeddedFace] | list[Embedding],
    question: Question,
    stopwatch: Stopwatch,
) -> Identification:
    """Search for all probes at once and decide on each."""
    contract = gallery.bundle.contract
    rule = choose_threshold(contract, question.threshold, question.target_fpir)
    embeddings = [probe.embedding if isinstance(probe, EmbeddedFace) else probe for probe in probes]
    with stopwatch.stage("search"):
        found = gallery.search(collection, embeddings, question.limit, question.fusion)
    results = [
        Result(
            face=probe if isinstance(probe, EmbeddedFace) else None,
            normalised=isinstance(probe, Embedding) and probe.normalised,
            match=candidates[0] if candidates and candidates[0].similarity >= rule.value else None,
            candidates=candidates,
        )
        for probe, candidates in zip(probes, found, strict=True)
    ]
    return Identification(
        collection=collection.name,
        gallery_size=collection.people,
        gallery_faces=collection.faces,
        threshold=rule.value,
        target_fpir=None,
        extrapolated=rule.extrapolated,
        model=contract.name,
        results=results,
        timings_ms=stopwatch.milliseconds(),
    )
