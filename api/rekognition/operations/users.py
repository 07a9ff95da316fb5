"""Users: create, list, delete, and give faces to them or take some away."""

from typing import Annotated, Any

from fastapi import Depends

from sameface.api.dependencies import Gallery
from sameface.api.rekognition.access import signed
from sameface.api.rekognition.answers import describe_refused
from sameface.api.rekognition.bodies import CollectionPage, FacesOfUser, OneUser
from sameface.api.rekognition.errors import UserExists
from sameface.api.rekognition.operation import OperationRouter
from sameface.api.rekognition.pages import read_token, turn_page
from sameface.model.errors import AlreadyExists
from sameface.model.gallery import users
from sameface.model.gallery.gallery import Gallery as OpenGallery
from sameface.model.store.records import Collection

router = OperationRouter()


@router.post("/")
async def create_user(
    asked: Annotated[OneUser, Depends(signed(OneUser, "write"))], gallery: Gallery
) -> dict[str, Any]:
    """Enrol a user without a face."""
    collection = await gallery.readers.run(gallery.get_collection, asked.collection_id)
    await gallery.writers.run(add_user, gallery, collection, asked)
    return {}


def add_user(gallery: OpenGallery, collection: Collection, asked: OneUser) -> None:
    """Enrol a user; whoever exists already is a conflict, as clients of Rekognition call it."""
    try:
        users.create_user(gallery, collection, asked.user_id, asked.client_request_token)
    except AlreadyExists:
        raise UserExists(f"There is a user {asked.user_id!r} in {collection.name!r} already.") from None


@router.post("/")
async def delete_user(
    asked: Annotated[OneUser, Depends(signed(OneUser, "write"))], gallery: Gallery
) -> dict[str, Any]:
    """Delete a user, whose faces stay in the collection."""
    collection = await gallery.readers.run(gallery.get_collection, asked.collection_id)
    await gallery.writers.run(users.delete_user, gallery, collection, asked.user_id)
    return {}


@router.post("/")
async def list_users(
    asked: Annotated[CollectionPage, Depends(signed(CollectionPage, "search"))], gallery: Gallery
) -> dict[str, Any]:
    """List the users of a collection, by id."""
    collection = await gallery.readers.run(gallery.get_collection, asked.collection_id)
    limit, after = asked.max_results, read_token(asked.next_token)
    found = await gallery.readers.run(users.list_users, gallery, collection, limit + 1, after)
    shown, token = turn_page(found, limit, lambda user: user.person_id)
    return token | {
        "Users": [
            {
                "UserId": users.name_user(user.person_id, user.name),
                "UserStatus": name_status(user.faces),
            }
            for user in shown
        ]
    }


@router.post("/")
async def associate_faces(
    asked: Annotated[FacesOfUser, Depends(signed(FacesOfUser, "write"))], gallery: Gallery
) -> dict[str, Any]:
    """Give faces to a user, each if it is similar enough to those that the user has."""
    collection = await gallery.readers.run(gallery.get_collection, asked.collection_id)
    lowest = asked.user_match_threshold / 100
    done = await gallery.writers.run(
        users.associate, gallery, collection, asked.user_id, asked.face_ids, lowest
    )
    return {
        "AssociatedFaces": [{"FaceId": face_id} for face_id in done.moved],
        "UnsuccessfulFaceAssociations": describe_refused(done.refused),
        "UserStatus": name_status(done.owned),
    }


@router.post("/")
async def disassociate_faces(
    asked: Annotated[FacesOfUser, Depends(signed(FacesOfUser, "write"))], gallery: Gallery
) -> dict[str, Any]:
    """Take faces from a user; they stay in the collection, each without a user."""
    collection = await gallery.readers.run(gallery.get_collection, asked.collection_id)
    done = await gallery.writers.run(users.disassociate, gallery, collection, asked.user_id, asked.face_ids)
    return {
        "DisassociatedFaces": [{"FaceId": face_id} for face_id in done.moved],
        "UnsuccessfulFaceDisassociations": describe_refused(done.refused),
        "UserStatus": name_status(done.owned),
    }


def name_status(faces: int) -> str:
    """`CREATED` for a user with no `faces`, whom a search cannot find; else `ACTIVE`."""
    return "ACTIVE" if faces else "CREATED"
