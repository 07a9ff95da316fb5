"""Who is this? The faces of a photo, or embeddings, against the subjects of the key's collection."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Depends, Request

from sameface.api.body.read_body import body_of
from sameface.api.compreface.access import SEARCH, Collection
from sameface.api.compreface.answers import (
    describe_face,
    describe_result,
    describe_similarity,
    find_faces,
    list_embeddings,
)
from sameface.api.compreface.bodies import Embeddings, OnePhoto
from sameface.api.compreface.embeddings import accept_all, describe_ranks
from sameface.api.compreface.options import Chosen, Options, read_options
from sameface.api.compreface.router import PREFIX, SlashRouter
from sameface.api.dependencies import ROOM, Gallery, Pipeline
from sameface.model.decision.thresholds import EXTRAPOLATING
from sameface.model.errors import SamefaceError
from sameface.model.faces import Embedding
from sameface.model.gallery import subjects
from sameface.model.gallery.gallery import Gallery as OpenGallery
from sameface.model.gallery.probes import Probes
from sameface.model.identify import SearchOptions, identify_many
from sameface.model.pipeline import Pipeline as LoadedPipeline
from sameface.model.store.records import Collection as StoredCollection
from sameface.model.verify import CompareRequest, compare

router = SlashRouter(prefix=f"{PREFIX}/recognition", dependencies=[SEARCH])

SentEmbeddings = Annotated[Embeddings, Depends(body_of(Embeddings))]


@router.post("/recognize", dependencies=[ROOM])
async def recognize(
    request: Request,
    body: Annotated[OnePhoto, Depends(body_of(OnePhoto))],
    collection: Collection,
    pipeline: Pipeline,
    gallery: Gallery,
) -> dict[str, Any]:
    """Say for every face of a photo which subjects are most similar."""
    options = read_options(request, body.fields)
    found = await find_faces(pipeline, body.file, options)
    probes = list_embeddings(pipeline, found)
    similar = await search(pipeline, gallery, collection, probes, options)
    results = [
        describe_face(face, options, found.timings_ms) | {"subjects": names}
        for face, names in zip(found.faces, similar, strict=True)
    ]
    return describe_result(results, options, pipeline)


@router.post("/embeddings/recognize")
async def recognize_embeddings(
    body: SentEmbeddings, options: Chosen, collection: Collection, pipeline: Pipeline, gallery: Gallery
) -> dict[str, Any]:
    """Say for every embedding which subjects are most similar."""
    probes = accept_all(gallery.bundle, body.embeddings)
    similar = await search(pipeline, gallery, collection, probes, options)
    pairs = zip(body.embeddings, similar, strict=True)
    return {"result": [{"embedding": sent, "similarities": names} for sent, names in pairs]}


@router.post("/embeddings/faces/{image_id}/verify")
async def verify_embeddings(
    image_id: str, body: SentEmbeddings, collection: Collection, pipeline: Pipeline, gallery: Gallery
) -> dict[str, Any]:
    """Compare embeddings with one face of a subject, most similar first."""
    owner, known = await gallery.readers.run(subjects.find_face, gallery, collection, image_id)
    probes = accept_all(gallery.bundle, body.embeddings)
    asked = CompareRequest(known=known, probes=probes, collection=collection, owner=owner)
    return describe_ranks(body.embeddings, compare(pipeline, gallery, asked))


async def search(
    pipeline: LoadedPipeline,
    gallery: OpenGallery,
    collection: StoredCollection,
    probes: Sequence[Embedding],
    options: Options,
) -> list[list[dict[str, Any]]]:
    """For each probe the most similar subjects with their similarities."""
    threshold = gallery.choose_threshold(collection, EXTRAPOLATING)
    wanted = SearchOptions(collection=collection, limit=options.prediction_count)
    answers = []
    identified = await identify_many(pipeline, gallery, Probes.of(probes), wanted)
    for found in identified.by_probe():
        if isinstance(found, SamefaceError):
            raise found
        [face] = found
        answers.append(
            [
                {
                    "subject": candidate.name or candidate.person_id,
                    "similarity": describe_similarity(threshold, candidate.similarity),
                }
                for candidate in face.candidates
            ]
        )
    return answers
