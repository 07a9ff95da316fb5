"""Collections: people that are searched together."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from sameface.api.body.read_body import body_of
from sameface.api.dependencies import READ, WRITE, Collection, Gallery, Id
from sameface.api.openapi import examples
from sameface.api.openapi.responses import COLLECTION_PROBLEMS, KEY_PROBLEMS, answers, document_body
from sameface.api.schemas.collections import CollectionList, CollectionResponse
from sameface.api.schemas.people import CollectionRequest

router = APIRouter(prefix="/v1/collections", tags=["collections"])


@router.put(
    "/{collection}",
    dependencies=[WRITE],
    openapi_extra=document_body(CollectionRequest),
    responses=answers(
        examples.COLLECTION,
        *KEY_PROBLEMS,
        "already_exists",
        "calibration_not_found",
        "invalid_request",
        "storage_full",
    ),
)
async def create_collection(
    collection: Id,
    body: Annotated[CollectionRequest, Depends(body_of(CollectionRequest))],
    gallery: Gallery,
    response: Response,
) -> CollectionResponse:
    """Make a collection: 201 if it is new, 200 if it is there and the same."""
    made, new = await asyncio.to_thread(
        gallery.create_collection, collection, store_crops=body.store_crops, calibration=body.calibration
    )
    response.status_code = 201 if new else 200
    return await asyncio.to_thread(CollectionResponse.from_collection, made, gallery)


@router.get(
    "", dependencies=[READ], responses=answers(examples.COLLECTIONS, *KEY_PROBLEMS, "invalid_request")
)
async def list_collections(
    gallery: Gallery,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    cursor: Annotated[str, Query(max_length=128)] = "",
) -> CollectionList:
    """List collections by name."""
    return await asyncio.to_thread(CollectionList.page, gallery, limit, cursor)


@router.get(
    "/{collection}", dependencies=[READ], responses=answers(examples.COLLECTION, *COLLECTION_PROBLEMS)
)
async def get_collection(collection: Collection, gallery: Gallery) -> CollectionResponse:
    """Say how many people and faces a collection has, and of which model."""
    return await asyncio.to_thread(CollectionResponse.from_collection, collection, gallery)


@router.delete(
    "/{collection}",
    dependencies=[WRITE],
    status_code=204,
    responses=answers(None, *KEY_PROBLEMS, "collection_not_found", success=204),
)
async def delete_collection(collection: Id, gallery: Gallery) -> None:
    """Forget a collection and everybody in it."""
    await asyncio.to_thread(gallery.delete_collection, collection)
