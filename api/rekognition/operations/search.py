"""Who looks like this? A face of a collection, or the largest of a photo, against its faces or its users."""

from typing import Annotated, Any

from fastapi import Depends

from sameface.api.dependencies import ROOM, Gallery, Pipeline
from sameface.api.rekognition.access import signed
from sameface.api.rekognition.answers import (
    describe_box,
    describe_detail,
    describe_known,
    describe_similarity,
    to_percent,
)
from sameface.api.rekognition.bodies import MOST_FACES, FaceToSearch, PhotoOfUser, PhotoToSearch
from sameface.api.rekognition.operation import OperationRouter
from sameface.api.rekognition.photos import find_faces
from sameface.model.decision.thresholds import EXTRAPOLATING
from sameface.model.faces import Embedding
from sameface.model.gallery import subjects, users
from sameface.model.gallery.gallery import Gallery as OpenGallery
from sameface.model.identify import IdentifyRequest, identify
from sameface.model.pipeline import Pipeline as LoadedPipeline
from sameface.model.store.records import Collection

router = OperationRouter()


@router.post("/")
async def search_faces(
    asked: Annotated[FaceToSearch, Depends(signed(FaceToSearch, "search"))],
    pipeline: Pipeline,
    gallery: Gallery,
) -> dict[str, Any]:
    """Look for the faces that are similar to a face of the collection, which is not among them."""
    collection = await gallery.readers.run(gallery.get_collection, asked.collection_id)
    _, probe = await gallery.readers.run(subjects.find_face, gallery, collection, asked.face_id)
    matches = await find_similar(
        pipeline, gallery, collection, probe, asked.max_faces + 1, asked.face_match_threshold
    )
    others = [match for match in matches if match["Face"]["FaceId"] != asked.face_id]
    return {
        "SearchedFaceId": asked.face_id,
        "FaceMatches": others[: asked.max_faces],
        "FaceModelVersion": collection.bundle,
    }


@router.post("/", dependencies=[ROOM])
async def search_faces_by_image(
    asked: Annotated[PhotoToSearch, Depends(signed(PhotoToSearch, "search"))],
    pipeline: Pipeline,
    gallery: Gallery,
) -> dict[str, Any]:
    """Look for the faces that are similar to the largest face of a photo."""
    collection = await gallery.readers.run(gallery.get_collection, asked.collection_id)
    found = await find_faces(pipeline, asked.image, asked.quality_filter, "largest")
    [face], [probe] = found.faces, found.embeddings
    return {
        "SearchedFaceBoundingBox": describe_box(face.box, found.size),
        "SearchedFaceConfidence": to_percent(face.score),
        "FaceMatches": await find_similar(
            pipeline, gallery, collection, probe, asked.max_faces, asked.face_match_threshold
        ),
        "FaceModelVersion": collection.bundle,
    }


@router.post("/", dependencies=[ROOM])
async def search_users_by_image(
    asked: Annotated[PhotoOfUser, Depends(signed(PhotoOfUser, "search"))],
    pipeline: Pipeline,
    gallery: Gallery,
) -> dict[str, Any]:
    """Look for the users who are similar to the largest face of a photo."""
    collection = await gallery.readers.run(gallery.get_collection, asked.collection_id)
    found = await find_faces(pipeline, asked.image, asked.quality_filter, "all")
    threshold = gallery.choose_threshold(collection, EXTRAPOLATING)
    # Faces without a user are people, too, and may be more similar: as many as can be are looked at.
    request = IdentifyRequest(collection=collection, probe=found.embeddings[0], limit=MOST_FACES)
    [result] = (await identify(pipeline, gallery, request)).results
    matches = []
    for candidate in result.candidates:
        confidence = describe_similarity(threshold, candidate.similarity)
        if confidence >= asked.user_match_threshold and candidate.person_id != candidate.face_id:
            user = {"UserId": users.name_user(candidate.person_id, candidate.name), "UserStatus": "ACTIVE"}
            matches.append({"Similarity": confidence, "User": user})
    searched, *others = (describe_detail(face, found.size) for face in found.faces)
    return {
        "UserMatches": matches[: asked.max_users],
        "SearchedFace": {"FaceDetail": searched},
        "UnsearchedFaces": [{"FaceDetails": each, "Reasons": ["FACE_NOT_LARGEST"]} for each in others],
        "FaceModelVersion": collection.bundle,
    }


async def find_similar(
    pipeline: LoadedPipeline,
    gallery: OpenGallery,
    collection: Collection,
    probe: Embedding,
    limit: int,
    lowest: float,
) -> list[dict[str, Any]]:
    """Up to `limit` faces whose similarity to the probe is at least `lowest` percent, most similar first."""
    request = IdentifyRequest(collection=collection, probe=probe, limit=limit)
    [result] = (await identify(pipeline, gallery, request)).results
    threshold = gallery.choose_threshold(collection, EXTRAPOLATING)
    near = [
        candidate
        for candidate in result.candidates
        if describe_similarity(threshold, candidate.similarity) >= lowest
    ]
    ranked = await gallery.readers.run(users.rank_faces, gallery, collection, probe, near)
    return [
        {"Similarity": confidence, "Face": describe_known(face, collection.bundle)}
        for face, similarity in ranked[:limit]
        if (confidence := describe_similarity(threshold, similarity)) >= lowest
    ]
