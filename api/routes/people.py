"""The people of a collection: enrol, look up, change, forget."""

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query

from sameface.api.body.read_body import body_of
from sameface.api.dependencies import READ, ROOM, WRITE, Collection, Gallery, Id, IdempotencyKey, Registrar
from sameface.api.openapi import examples
from sameface.api.openapi.responses import COLLECTION_PROBLEMS, PHOTO_PROBLEMS, answers, document_body
from sameface.api.schemas.collections import EnrolResponse, PersonList, PersonResponse
from sameface.api.schemas.people import FacesRequest, PersonRequest, PersonUpdate

router = APIRouter(prefix="/v1/collections/{collection}/people", tags=["people"])

ENROL_PROBLEMS = (
    *COLLECTION_PROBLEMS,
    *PHOTO_PROBLEMS,
    "no_face_found",
    "face_too_small",
    "low_quality_face",
    "idempotency_key_reused",
    "storage_full",
)


@router.post(
    "",
    status_code=201,
    dependencies=[WRITE, ROOM],
    openapi_extra=document_body(PersonRequest),
    responses=answers(examples.ENROLLED, *ENROL_PROBLEMS, "already_exists", success=201),
)
async def enrol_person(
    collection: Collection,
    body: Annotated[PersonRequest, Depends(body_of(PersonRequest))],
    registrar: Registrar,
    idempotency_key: IdempotencyKey = None,
) -> EnrolResponse:
    """Enrol a person by one or more photos or embeddings."""
    application = body.to_application(registrar.gallery, idempotency_key=idempotency_key)
    return EnrolResponse.model_validate(await registrar.enrol(collection, application))


@router.get("", dependencies=[READ], responses=answers(examples.PEOPLE, *COLLECTION_PROBLEMS))
async def list_people(
    collection: Collection,
    gallery: Gallery,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    cursor: Annotated[str, Query(max_length=128)] = "",
) -> PersonList:
    """List people by id."""
    return await asyncio.to_thread(PersonList.page, gallery, collection, limit, cursor)


@router.get(
    "/{person_id}",
    dependencies=[READ],
    responses=answers(examples.PERSON, *COLLECTION_PROBLEMS, "person_not_found"),
)
async def get_person(collection: Collection, person_id: Id, gallery: Gallery) -> PersonResponse:
    """Look a person up."""
    return PersonResponse.model_validate(
        await asyncio.to_thread(gallery.store.people.get, collection, person_id)
    )


@router.patch(
    "/{person_id}",
    dependencies=[WRITE],
    openapi_extra=document_body(PersonUpdate),
    responses=answers(examples.PERSON, *COLLECTION_PROBLEMS, "person_not_found", "storage_full"),
)
async def update_person(
    collection: Collection,
    person_id: Id,
    body: Annotated[PersonUpdate, Depends(body_of(PersonUpdate))],
    gallery: Gallery,
) -> PersonResponse:
    """Give a person another name or other metadata."""
    values: dict[str, Any] = body.model_dump(exclude_unset=True)
    await asyncio.to_thread(gallery.store.people.update, collection, person_id, values)
    return await get_person(collection, person_id, gallery)


@router.delete(
    "/{person_id}",
    status_code=204,
    dependencies=[WRITE],
    responses=answers(None, *COLLECTION_PROBLEMS, "person_not_found", success=204),
)
async def forget_person(collection: Collection, person_id: Id, gallery: Gallery) -> None:
    """Forget a person: gone from every answer once this one is sent."""
    await asyncio.to_thread(gallery.store.people.delete, collection, person_id)


@router.post(
    "/{person_id}/faces",
    status_code=201,
    dependencies=[WRITE, ROOM],
    openapi_extra=document_body(FacesRequest),
    responses=answers(examples.ENROLLED, *ENROL_PROBLEMS, "person_not_found", success=201),
)
async def add_faces(
    collection: Collection,
    person_id: Id,
    body: Annotated[FacesRequest, Depends(body_of(FacesRequest))],
    registrar: Registrar,
    idempotency_key: IdempotencyKey = None,
) -> EnrolResponse:
    """Give an enrolled person more faces."""
    application = body.to_application(
        registrar.gallery, person_id=person_id, must_exist=True, idempotency_key=idempotency_key
    )
    return EnrolResponse.model_validate(await registrar.enrol(collection, application))


@router.delete(
    "/{person_id}/faces/{face_id}",
    status_code=204,
    dependencies=[WRITE],
    responses=answers(None, *COLLECTION_PROBLEMS, "person_not_found", "face_not_found", success=204),
)
async def forget_face(collection: Collection, person_id: Id, face_id: Id, gallery: Gallery) -> None:
    """Forget one face of a person."""
    await asyncio.to_thread(gallery.store.people.delete_face, collection, person_id, face_id)
