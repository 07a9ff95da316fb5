"""A collection of staff, and what is in it."""

from sameface.model.store.records import Binding, Collection
from sameface.model.store.store import Store

DIMENSION = 8
BINDING = Binding(bundle="tiny", identity="abc", dimension=DIMENSION)


def faces_of(store: Store, collection: Collection, person_id: str) -> list[str]:
    return [face.face_id for face in store.people.get(collection, person_id).faces]


def count(store: Store) -> tuple[int, int]:
    staff = store.collections.get("staff")
    return staff.people, staff.faces
