"""The services for detection and verification, and what CompreFace says of itself."""

from typing import Annotated, Any

from fastapi import Depends, Request

from sameface.api.body.read_body import body_of
from sameface.api.compreface.access import DETECT, VERIFY, Collection
from sameface.api.compreface.answers import (
    choose,
    describe_face,
    describe_matches,
    describe_result,
    find_faces,
    find_only_face,
    list_embeddings,
)
from sameface.api.compreface.bodies import EmbeddingPairs, OnePhoto, TwoPhotos
from sameface.api.compreface.embeddings import accept_all, describe_ranks
from sameface.api.compreface.options import read_options
from sameface.api.compreface.router import PREFIX, SlashRouter
from sameface.api.dependencies import ROOM, Gallery, Pipeline
from sameface.model.verify import CompareRequest, compare

router = SlashRouter(prefix=PREFIX)


@router.post("/detection/detect", dependencies=[DETECT, ROOM])
async def detect(
    request: Request, body: Annotated[OnePhoto, Depends(body_of(OnePhoto))], pipeline: Pipeline
) -> dict[str, Any]:
    """Find the faces in a photo."""
    options = read_options(request, body.fields)
    if "calculator" in options.face_plugins:
        embedded = await find_faces(pipeline, body.file, options)
        results = [describe_face(face, options, embedded.timings_ms) for face in embedded.faces]
    else:
        found = await pipeline.detect(body.file)
        results = [describe_face(face, options, found.timings_ms) for face in choose(found.faces, options)]
    return describe_result(results, options, pipeline)


@router.post("/verification/verify", dependencies=[VERIFY, ROOM])
async def verify(
    request: Request,
    body: Annotated[TwoPhotos, Depends(body_of(TwoPhotos))],
    collection: Collection,
    pipeline: Pipeline,
    gallery: Gallery,
) -> dict[str, Any]:
    """Compare the only face of one photo with the faces of another."""
    options = read_options(request, body.fields)
    source = await find_only_face(pipeline, body.source_image, options)
    target = await find_faces(pipeline, body.target_image, options)
    [known], probes = list_embeddings(pipeline, source), list_embeddings(pipeline, target)
    asked = CompareRequest(known=known, probes=probes, collection=collection)
    matches = describe_matches(target, options, compare(pipeline, gallery, asked))
    shown = describe_face(source.faces[0], options, source.timings_ms)
    return describe_result([{"source_image_face": shown, "face_matches": matches}], options, pipeline)


@router.post("/verification/embeddings/verify", dependencies=[VERIFY])
async def verify_embeddings(
    body: Annotated[EmbeddingPairs, Depends(body_of(EmbeddingPairs))],
    collection: Collection,
    pipeline: Pipeline,
    gallery: Gallery,
) -> dict[str, Any]:
    """Compare embeddings with another one, most similar first."""
    known, *probes = accept_all(gallery.bundle, [body.source, *body.targets])
    asked = CompareRequest(known=known, probes=probes, collection=collection)
    return describe_ranks(body.targets, compare(pipeline, gallery, asked))


@router.get("/config")
async def get_config(request: Request) -> dict[str, Any]:
    """What a client may send."""
    largest = request.app.state.settings.max_image_bytes
    return {"clientMaxFileSize": largest, "clientMaxBodySize": 2 * largest}


@router.get("/consistence/status")
async def get_status() -> dict[str, Any]:
    """That all is well: the server answers."""
    return {
        "demoFaceCollectionIsInconsistent": False,
        "dbIsInconsistent": False,
        "saveImagesToDB": False,
        "status": "OK",
    }
