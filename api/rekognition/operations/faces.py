"""The faces of a collection: index, list, delete."""

from typing import Annotated, Any

from fastapi import Depends

from sameface.api.dependencies import ROOM, Gallery, Pipeline
from sameface.api.rekognition.access import signed
from sameface.api.rekognition.answers import (
    QUALITY_BARS,
    describe_detail,
    describe_known,
    describe_refused,
    describe_seen,
    name_image,
    name_reasons,
)
from sameface.api.rekognition.bodies import FaceList, PhotoToIndex, SomeFaces
from sameface.api.rekognition.operation import OperationRouter
from sameface.api.rekognition.pages import read_number, turn_page
from sameface.model.enroll_faces import FacesRequest, enroll_faces
from sameface.model.gallery import users

router = OperationRouter()


@router.post("/", dependencies=[ROOM])
async def index_faces(
    asked: Annotated[PhotoToIndex, Depends(signed(PhotoToIndex, "write"))],
    pipeline: Pipeline,
    gallery: Gallery,
) -> dict[str, Any]:
    """Enrol the faces of a photo, each without a user."""
    request = FacesRequest(
        collection=asked.collection_id,
        photo=asked.image,
        most=asked.max_faces,
        min_quality=QUALITY_BARS[asked.quality_filter],
        external_id=asked.external_image_id,
    )
    found = await enroll_faces(pipeline, gallery, request)
    named = {"ImageId": name_image(found.photo), "IndexFacesModelVersion": found.model}
    if asked.external_image_id is not None:
        named["ExternalImageId"] = asked.external_image_id
    return {
        "FaceRecords": [
            {
                "Face": {"FaceId": face_id} | named | describe_seen(face, found.size),
                "FaceDetail": describe_detail(face, found.size),
            }
            for face_id, face in found.enrolled.items()
        ],
        "UnindexedFaces": [
            {"Reasons": name_reasons(reasons), "FaceDetail": describe_detail(face, found.size)}
            for face, reasons in found.left_out
        ],
        "FaceModelVersion": found.model,
    }


@router.post("/")
async def list_faces(
    asked: Annotated[FaceList, Depends(signed(FaceList, "search"))], gallery: Gallery
) -> dict[str, Any]:
    """List a page of the collection's faces, or those with the ids asked for, in order of enrolment."""
    collection = await gallery.readers.run(gallery.get_collection, asked.collection_id)
    limit, after = asked.max_results, read_number(asked.next_token)
    which = asked.face_ids, asked.user_id
    found = await gallery.readers.run(users.list_faces, gallery, collection, limit + 1, after, *which)
    shown, token = turn_page(found, limit, lambda face: str(face.key))
    faces = [describe_known(face, collection.bundle) for face in shown]
    return token | {"Faces": faces, "FaceModelVersion": collection.bundle}


@router.post("/")
async def delete_faces(
    asked: Annotated[SomeFaces, Depends(signed(SomeFaces, "write"))], gallery: Gallery
) -> dict[str, Any]:
    """Delete faces without a user; those of a user stay, until they are taken from the user."""
    collection = await gallery.readers.run(gallery.get_collection, asked.collection_id)
    gone, refused = await gallery.writers.run(users.delete_faces, gallery, collection, asked.face_ids)
    return {"DeletedFaces": gone, "UnsuccessfulFaceDeletions": describe_refused(refused)}
