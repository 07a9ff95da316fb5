"""The people of a collection: enrol, look up, change, forget."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response

from sameface.api.access.caller import SEARCH, WRITE
from sameface.api.body.read_body import body_of
from sameface.api.dependencies import ROOM, Collection, CollectionName, Gallery, Id, IdempotencyKey, Pipeline
from sameface.api.openapi import examples, links
from sameface.api.openapi.bodies import document_body
from sameface.api.openapi.responses import BODY_PROBLEMS, COLLECTION_PROBLEMS, PHOTO_PROBLEMS, responses
from sameface.api.schemas.people import (
    EnrollResponse,
    FacesRequest,
    PersonList,
    PersonRequest,
    PersonResponse,
    PersonUpdate,
)
from sameface.model.enroll import enroll

router = APIRouter(prefix="/v1/collections/{collection}/people", tags=["people"])

ENROLL_PROBLEMS = (
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
    openapi_extra=document_body(
        PersonRequest, {"images": [examples.PHOTO], "person_id": "ada", "name": "Ada"}
    ),
    responses=responses(
        examples.ENROLLED,
        *ENROLL_PROBLEMS,
        "already_exists",
        "person_not_found",
        success=201,
        links=links.ENROLLED,
    ),
)
async def enroll_person(
    collection: CollectionName,
    body: Annotated[PersonRequest, Depends(body_of(PersonRequest))],
    pipeline: Pipeline,
    gallery: Gallery,
    idempotency_key: IdempotencyKey = None,
) -> EnrollResponse:
    """Enrol a person by one or more photos or embeddings."""
    request = body.to_request(collection, gallery.bundle, idempotency_key=idempotency_key)
    return EnrollResponse.model_validate(await enroll(pipeline, gallery, request))


@router.get(
    "",
    dependencies=[SEARCH],
    responses=responses(examples.PEOPLE, *COLLECTION_PROBLEMS),
)
async def list_people(
    collection: Collection,
    gallery: Gallery,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    cursor: Annotated[str, Query(max_length=128)] = "",
) -> PersonList:
    """List people by id."""
    people = await gallery.readers.run(gallery.list_people, collection, limit, cursor)
    return PersonList.from_people(people, limit)


@router.get(
    "/{person_id}",
    dependencies=[SEARCH],
    responses=responses(examples.PERSON, *COLLECTION_PROBLEMS, "person_not_found", links=links.PERSON),
)
async def get_person(collection: Collection, person_id: Id, gallery: Gallery) -> PersonResponse:
    """Look a person up."""
    return PersonResponse.model_validate(await gallery.readers.run(gallery.get_person, collection, person_id))


@router.patch(
    "/{person_id}",
    dependencies=[WRITE],
    openapi_extra=document_body(PersonUpdate, {"name": "Ada"}, required=False),
    responses=responses(
        examples.PERSON, *COLLECTION_PROBLEMS, *BODY_PROBLEMS, "person_not_found", "storage_full"
    ),
)
async def update_person(
    collection: Collection,
    person_id: Id,
    body: Annotated[PersonUpdate, Depends(body_of(PersonUpdate))],
    gallery: Gallery,
) -> PersonResponse:
    """Give a person another name or other metadata."""
    values: dict[str, Any] = body.model_dump(exclude_unset=True)
    person = await gallery.writers.run(gallery.update_person, collection, person_id, values)
    return PersonResponse.model_validate(person)


@router.delete(
    "/{person_id}",
    status_code=204,
    dependencies=[WRITE],
    response_class=Response,  # without a content type, as there is no content
    responses=responses(None, *COLLECTION_PROBLEMS, "person_not_found", "storage_full", success=204),
)
async def forget_person(collection: Collection, person_id: Id, gallery: Gallery) -> None:
    """Forget a person: gone from every answer once this one is sent."""
    await gallery.writers.run(gallery.forget_person, collection, person_id)


@router.post(
    "/{person_id}/faces",
    status_code=201,
    dependencies=[WRITE, ROOM],
    openapi_extra=document_body(FacesRequest, {"images": [examples.PHOTO]}),
    responses=responses(
        examples.ENROLLED, *ENROLL_PROBLEMS, "person_not_found", success=201, links=links.ENROLLED
    ),
)
async def add_faces(
    collection: CollectionName,
    person_id: Id,
    body: Annotated[FacesRequest, Depends(body_of(FacesRequest))],
    pipeline: Pipeline,
    gallery: Gallery,
    idempotency_key: IdempotencyKey = None,
) -> EnrollResponse:
    """Give an enrolled person more faces."""
    request = body.to_request(
        collection, gallery.bundle, person_id=person_id, must_exist=True, idempotency_key=idempotency_key
    )
    return EnrollResponse.model_validate(await enroll(pipeline, gallery, request))


@router.delete(
    "/{person_id}/faces/{face_id}",
    status_code=204,
    dependencies=[WRITE],
    response_class=Response,  # without a content type, as there is no content
    responses=responses(
        None, *COLLECTION_PROBLEMS, "person_not_found", "face_not_found", "storage_full", success=204
    ),
)
async def forget_face(collection: Collection, person_id: Id, face_id: Id, gallery: Gallery) -> None:
    """Forget one face of a person."""
    await gallery.writers.run(gallery.forget_face, collection, person_id, face_id)
