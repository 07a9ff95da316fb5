"""Collections: create, describe, list, delete."""

from typing import Annotated, Any

from fastapi import Depends

from sameface.api.access.caller import Caller
from sameface.api.dependencies import Gallery
from sameface.api.rekognition.access import signed
from sameface.api.rekognition.bodies import InCollection, Page
from sameface.api.rekognition.operation import OperationRouter
from sameface.api.rekognition.pages import read_token, turn_page
from sameface.model.errors import AlreadyExists
from sameface.model.gallery import users

router = OperationRouter()


@router.post("/")
async def create_collection(
    asked: Annotated[InCollection, Depends(signed(InCollection, "admin"))], gallery: Gallery
) -> dict[str, Any]:
    """Make a collection."""
    made, is_new = await gallery.writers.run(gallery.create_collection, asked.collection_id)
    if not is_new:
        raise AlreadyExists(f"There is a collection {made.name!r} already.")
    return {"StatusCode": 200, "CollectionArn": name_resource(made.name), "FaceModelVersion": made.bundle}


@router.post("/")
async def describe_collection(
    asked: Annotated[InCollection, Depends(signed(InCollection, "search"))], gallery: Gallery
) -> dict[str, Any]:
    """Say how many faces and users a collection has, and since when there is one."""
    found = await gallery.readers.run(gallery.get_collection, asked.collection_id)
    return {
        "FaceCount": found.faces,
        "UserCount": await gallery.readers.run(users.count_users, gallery, found),
        "FaceModelVersion": found.bundle,
        "CollectionARN": name_resource(found.name),
        "CreationTimestamp": found.created_at,
    }


@router.post("/")
async def list_collections(
    asked: Annotated[Page, Depends(signed(Page, "search"))], caller: Caller, gallery: Gallery
) -> dict[str, Any]:
    """List the collections that the caller's key may touch, by name."""
    within = caller.collections if caller else None
    after, limit = read_token(asked.next_token), asked.max_results
    found = await gallery.readers.run(gallery.list_collections, limit + 1, after, within)
    shown, token = turn_page(found, limit, lambda collection: collection.name)
    return token | {
        "CollectionIds": [collection.name for collection in shown],
        "FaceModelVersions": [collection.bundle for collection in shown],
    }


@router.post("/")
async def delete_collection(
    asked: Annotated[InCollection, Depends(signed(InCollection, "admin"))], gallery: Gallery
) -> dict[str, Any]:
    """Delete a collection with all its faces and users."""
    await gallery.writers.run(gallery.delete_collection, asked.collection_id)
    return {"StatusCode": 200}


def name_resource(collection: str) -> str:
    """The name by which AWS would know a collection; here, it has neither a region nor an account."""
    return f"arn:aws:rekognition:::collection/{collection}"
