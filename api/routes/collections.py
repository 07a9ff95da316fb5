"""Collections: people that are searched together."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from sameface.api.access.caller import ADMIN, SEARCH, Caller
from sameface.api.body.read_body import body_of
from sameface.api.dependencies import Collection, CollectionName, Gallery
from sameface.api.openapi import examples, links
from sameface.api.openapi.bodies import document_body
from sameface.api.openapi.responses import (
    BODY_PROBLEMS,
    COLLECTION_PROBLEMS,
    KEY_PROBLEMS,
    STORE_PROBLEMS,
    answer,
    responses,
)
from sameface.api.schemas.collections import CollectionList, CollectionRequest, CollectionResponse

router = APIRouter(prefix="/v1/collections", tags=["collections"])


@router.put(
    "/{collection}",
    dependencies=[ADMIN],
    openapi_extra=document_body(CollectionRequest, {"store_crops": False}, required=False),
    responses={
        201: {"model": CollectionResponse, **answer(examples.NEW_COLLECTION, links.COLLECTION)},
        **responses(
            examples.COLLECTION,
            *BODY_PROBLEMS,
            *STORE_PROBLEMS,
            "already_exists",
            "calibration_not_found",
            "collection_not_found",
            "storage_full",
            links=links.COLLECTION,
        ),
    },
)
async def create_collection(
    collection: CollectionName,
    body: Annotated[CollectionRequest, Depends(body_of(CollectionRequest))],
    gallery: Gallery,
    response: Response,
) -> CollectionResponse:
    """Make a collection: 201 if it is new, 200 if it is there and the same."""
    made, new = await gallery.writers.run(
        gallery.create_collection,
        collection,
        store_crops=body.store_crops,
        calibration=body.calibration,
        reviewers=body.reviewers,
    )
    response.status_code = 201 if new else 200
    return CollectionResponse.from_collection(made, gallery.index_kind(made))


@router.get(
    "",
    dependencies=[SEARCH],
    responses=responses(examples.COLLECTIONS, *KEY_PROBLEMS, *STORE_PROBLEMS),
)
async def list_collections(
    gallery: Gallery,
    caller: Caller,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    cursor: Annotated[str, Query(max_length=128)] = "",
) -> CollectionList:
    """List the collections that the caller may see, by name."""
    within = caller.collections if caller else None
    found = await gallery.readers.run(gallery.list_collections, limit, cursor, within)
    items = [CollectionResponse.from_collection(each, gallery.index_kind(each)) for each in found]
    return CollectionList.from_collections(items, limit)


@router.get(
    "/{collection}",
    dependencies=[SEARCH],
    responses=responses(examples.COLLECTION, *COLLECTION_PROBLEMS, links=links.COLLECTION),
)
async def get_collection(collection: Collection, gallery: Gallery) -> CollectionResponse:
    """Say how many people and faces a collection has, and of which model."""
    return CollectionResponse.from_collection(collection, gallery.index_kind(collection))


@router.delete(
    "/{collection}",
    dependencies=[ADMIN],
    status_code=204,
    response_class=Response,  # without a content type, as there is no content
    responses=responses(
        None, *KEY_PROBLEMS, *STORE_PROBLEMS, "collection_not_found", "storage_full", success=204
    ),
)
async def delete_collection(collection: CollectionName, gallery: Gallery) -> None:
    """Forget a collection and everybody in it."""
    await gallery.writers.run(gallery.delete_collection, collection)
