"""Who is this? Photos and embeddings against the people of a collection."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sameface.model.decision.thresholds import EXTRAPOLATING, Rule, Threshold
from sameface.model.errors import NoFaceFound, SamefaceError
from sameface.model.faces import EmbeddedFace, Face, Floats, Photo, Value
from sameface.model.gallery.gallery import Gallery
from sameface.model.gallery.identified import Identified, IdentifiedFace
from sameface.model.gallery.probes import Probe, Probes
from sameface.model.observer import Stopwatch
from sameface.model.pipeline import Pipeline
from sameface.model.store.access.audit import Columns, Entry
from sameface.model.store.records import Collection

FacesOrReason: TypeAlias = Sequence[EmbeddedFace] | SamefaceError  # of a photo
EmbedAll: TypeAlias = Callable[
    [Callable[[Photo], FacesOrReason], Sequence[Photo]], Awaitable[list[FacesOrReason]]
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """Where and how to search, and what counts as a match."""

    collection: str | Collection  # by name, or as the request has read it
    limit: int = 5
    faces: str = "all"
    fusion: str = "max"
    exact: bool = False
    rule: Rule = EXTRAPOLATING


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentifyRequest(SearchOptions):
    """A photo or an embedding to search for."""

    probe: Probe


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
    """The result of one search: the collection, the threshold, who is in the probes, and what to audit."""

    collection: Collection
    threshold: Threshold
    identified: Identified
    decisions: Sequence[Columns] = ()  # entries of the audit, if the gallery keeps them


async def identify(pipeline: Pipeline, gallery: Gallery, request: IdentifyRequest) -> Identification:
    """Search a collection for every face of a photo, or for an embedding; raises if the photo has no face."""
    stopwatch = pipeline.start_stopwatch()
    probes = Probes.of([request.probe])
    outcome = await search(pipeline, gallery, probes, request, pipeline.queue.run_all, stopwatch)
    [results] = outcome.identified.by_probe()
    if isinstance(results, SamefaceError):
        raise results
    collection, threshold = outcome.collection, outcome.threshold
    return Identification(
        collection=collection.name,
        gallery_size=collection.people,
        gallery_faces=collection.faces,
        threshold=threshold.value,
        target_fpir=threshold.target,
        extrapolated=threshold.extrapolated,
        calibration=threshold.calibration_name,
        model=gallery.bundle.contract.name,
        results=results,
        timings_ms=stopwatch.milliseconds(),
    )


async def identify_many(
    pipeline: Pipeline,
    gallery: Gallery,
    probes: Probes,
    options: SearchOptions,
    places: asyncio.Semaphore | None = None,
) -> Identified:
    """Who is in each probe of a block; photos wait for free places in the work queue.

    Blocks that are searched at the same time share `places`, those that one batch may take.
    """
    embed_in_turn = partial(pipeline.queue.run_in_turn, places=places)
    try:
        outcome = await search(pipeline, gallery, probes, options, embed_in_turn)
    except SamefaceError as error:  # the collection was deleted meanwhile
        return Identified(probes.count, {**dict.fromkeys(range(probes.count), error), **probes.errors})
    return outcome.identified


async def search(
    pipeline: Pipeline,
    gallery: Gallery,
    probes: Probes,
    options: SearchOptions,
    embed_all: EmbedAll,
    stopwatch: Stopwatch | None = None,
) -> SearchOutcome:
    """Embed the photos among the probes with `embed_all`, then search all faces in one batch.

    `stopwatch` collects the times of all stages; without one, only the observer sees them.
    """

    def embed(photo: Photo) -> FacesOrReason:
        try:
            found = pipeline.embed_faces(photo, options.faces, stopwatch).faces
        except SamefaceError as error:
            return error
        return found or NoFaceFound("No face was found in the photo.", faces_found=0)

    gallery.searchers.check_open()
    photos = list(probes.photos.values())
    embedded = zip(probes.photos, await embed_all(embed, photos) if photos else (), strict=True)
    outcome = await gallery.searchers.run(
        search_faces, gallery, probes, dict(embedded), options, stopwatch or pipeline.start_stopwatch()
    )
    if gallery.decisions:  # not on a search thread, for which others would wait
        await gallery.decisions.record_patiently(outcome.decisions)
    return outcome


def search_faces(
    gallery: Gallery,
    probes: Probes,
    photos: Mapping[int, FacesOrReason],
    options: SearchOptions,
    stopwatch: Stopwatch,
) -> SearchOutcome:
    """Search all faces of the probes, those in `photos` too, at one revision of the collection."""
    reasons = {place: faces for place, faces in photos.items() if isinstance(faces, SamefaceError)}
    shown = [
        (place, face)
        for place, faces in photos.items()
        if not isinstance(faces, SamefaceError)
        for face in faces
    ]
    places, faces, embeddings, normalised = line_up(probes, shown)
    with stopwatch.stage("search"):
        collection, candidates = gallery.search_newest(
            options.collection, embeddings, options.limit, options.fusion, exact=options.exact
        )
    threshold = gallery.choose_threshold(collection, options.rule, options.fusion)
    closest = candidates.closest()
    for similarity in closest[~np.isnan(closest)].tolist():
        stopwatch.observer.similarity("identify", similarity)
    identified = Identified(
        count=probes.count,
        errors={**probes.errors, **reasons},
        places=places,
        faces=faces,
        normalised=normalised,
        matched=closest >= threshold.value,
        candidates=candidates,
    )
    decisions = (
        describe_decisions(identified, collection, threshold, stopwatch.started_at)
        if gallery.decisions
        else ()
    )
    return SearchOutcome(collection, threshold, identified, decisions)


def line_up(
    probes: Probes, shown: Sequence[tuple[int, EmbeddedFace]]
) -> tuple[NDArray[np.intp], list[Face | None], Floats, NDArray[np.bool_]]:
    """Merge the sent embeddings with the faces `shown` in photos, sorted by the place of their probe.

    Returns places, faces (None for a sent embedding), embeddings, and whether each was normalised.
    """
    sent = len(probes.places)
    places = np.append(probes.places, [place for place, _ in shown]).astype(np.intp)
    if not shown:
        return places, [None] * sent, probes.embeddings, probes.normalised
    order = np.argsort(places, kind="stable")
    faces = [None] * sent + [face.to_face() for _, face in shown]
    own = np.stack([face.embedding.values for _, face in shown])
    embeddings = np.concatenate([probes.embeddings.reshape(sent, own.shape[1]), own])
    normalised = np.append(probes.normalised, np.zeros(len(shown), bool))
    return places[order], [faces[place] for place in order], embeddings[order], normalised[order]


def describe_decisions(
    identified: Identified, collection: Collection, threshold: Threshold, started_at: float
) -> list[Columns]:
    """The entries of the audit, one per face: the match that was found, or the closest similarity."""
    candidates = identified.candidates
    decided = {"threshold": threshold.value, "started_at": started_at}
    common = Entry.about(collection, "identify", outcome="unknown", **decided).to_columns()
    entries = []
    for first, closest, matched in zip(
        candidates.starts.tolist(), candidates.closest().tolist(), identified.matched.tolist(), strict=False
    ):
        found: Columns = {"similarity": None if math.isnan(closest) else closest}
        if matched:
            match = candidates.owners[first]
            found |= {
                "outcome": "match",
                "person_id": match.person_id,
                "details": {"face_ids": [match.face_id], "reviewers": collection.reviewers},
            }
        entries.append(common | found)
    return entries
