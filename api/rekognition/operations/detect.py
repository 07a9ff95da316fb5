"""Photos alone, without a collection: detect faces, and compare those of two photos."""

from typing import Annotated, Any

from fastapi import Depends

from sameface.api.dependencies import ROOM, Gallery, Pipeline
from sameface.api.rekognition.access import signed
from sameface.api.rekognition.answers import describe_detail, describe_seen, describe_similarity
from sameface.api.rekognition.bodies import OnePhoto, TwoPhotos
from sameface.api.rekognition.operation import OperationRouter
from sameface.api.rekognition.photos import find_faces, measure
from sameface.model.verify import CompareRequest, compare

router = OperationRouter()


@router.post("/", dependencies=[ROOM])
async def detect_faces(
    asked: Annotated[OnePhoto, Depends(signed(OnePhoto, "read"))], pipeline: Pipeline
) -> dict[str, Any]:
    """Find the faces of a photo, the largest first."""
    found = await pipeline.detect(asked.image)
    size = measure(pipeline, asked.image)
    faces = sorted(found.faces, key=lambda face: -face.box.width * face.box.height)
    return {"FaceDetails": [describe_detail(face, size) for face in faces]}


@router.post("/", dependencies=[ROOM])
async def compare_faces(
    asked: Annotated[TwoPhotos, Depends(signed(TwoPhotos, "read"))], pipeline: Pipeline, gallery: Gallery
) -> dict[str, Any]:
    """Compare the largest face of one photo with the faces of another."""
    source = await find_faces(pipeline, asked.source_image, asked.quality_filter)
    target = await find_faces(pipeline, asked.target_image, asked.quality_filter)
    known, *_ = source.embeddings
    compared = compare(pipeline, gallery, CompareRequest(known=known, probes=target.embeddings))
    matches, others = [], []
    for face, similarity in zip(target.faces, compared.similarities, strict=True):
        shown = describe_detail(face, target.size)
        confidence = describe_similarity(compared.threshold, similarity)
        if confidence >= asked.similarity_threshold:
            matches.append({"Similarity": confidence, "Face": shown})
        else:
            others.append(shown)
    return {
        "SourceImageFace": describe_seen(source.faces[0], source.size),
        "FaceMatches": sorted(matches, key=lambda match: -match["Similarity"]),
        "UnmatchedFaces": others,
    }
