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
COLLECTIONS = {
    **link(*COLLECTION_OPERATIONS, collection="$response.body#/items/0/name"),
    **link("list_collections", cursor="$response.body#/next_cursor"),
}
ENROLLED = {
    **link(*PERSON_OPERATIONS, **SAME_COLLECTION, person_id="$response.body#/person_id"),
    **link(
        "forget_face",
        **SAME_COLLECTION,
        person_id="$response.body#/person_id",
        face_id="$response.body#/faces/0/face_id",
    ),
}
PERSON = ENROLLED
PEOPLE = {
    **link(*PERSON_OPERATIONS, **SAME_COLLECTION, person_id="$response.body#/items/0/person_id"),
    **link("list_people", **SAME_COLLECTION, cursor="$response.body#/next_cursor"),
}
