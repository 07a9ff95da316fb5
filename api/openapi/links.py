"""Links of OpenAPI: which operations take what an answer holds, so that tools find their way."""

from typing import Any, TypeAlias

Links: TypeAlias = dict[str, dict[str, Any]]

COLLECTION_OPERATIONS = (
    "get_collection",
    "delete_collection",
    "enroll_person",
    "list_people",
    "identify",
    "enroll_batch",
    "identify_batch",
)
PERSON_OPERATIONS = ("get_person", "update_person", "forget_person", "add_faces")
SAME_COLLECTION = {"collection": "$request.path.collection"}


def link(*operations: str, **parameters: str) -> Links:
    """A link to each of `operations`, whose parameters are these expressions."""
    return {name: {"operationId": name, "parameters": parameters} for name in operations}


COLLECTION = link(*COLLECTION_OPERATIONS, collection="$response.body#/name")
PERSON = link(*PERSON_OPERATIONS, **SAME_COLLECTION, person_id="$response.body#/person_id")
KEY = link("get_key", "rotate_key", "revoke_key", key_id="$response.body#/key_id")
ENROLLED = {
    **PERSON,
    **link(
        "forget_face",
        **SAME_COLLECTION,
        person_id="$response.body#/person_id",
        face_id="$response.body#/faces/0/face_id",
    ),
}
