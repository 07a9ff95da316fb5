"""The owners of faces in memory, so that naming the people whom a search finds takes no query per block."""

import threading
from collections.abc import Sequence

from sameface.model.store.changes import ChangesCompacted
from sameface.model.store.records import Collection, FaceOwner
from sameface.model.store.store import Store

MOST_KNOWN = 250_000  # faces of one collection, some 75 MB
ASKED_AT_ONCE = 10_000  # faces of one query


class KnownOwners:
    """The owners of those faces of a collection that were found before, as of the change number `sequence`.

    A cache that is filled by what is asked for: many faces are never found, and a start need not wait for it.
    """

    def __init__(self, store: Store, collection: Collection) -> None:
        self.sequence = collection.revision
        self._store = store
        self._collection = collection
        self._owners: dict[int, FaceOwner] = {}
        self._lock = threading.Lock()

    def find(self, faces: Sequence[int]) -> list[FaceOwner | None]:
        """The owner of each face key as the store has it now; None for -1 and for a face that is deleted.

        The collection's revision is read first, so every change is seen that was committed before this call.
        """
        revision = self._store.changes.latest(self._collection)
        if 0 < revision <= self.sequence:
            found = self._look_up(faces)
            if all(owner or face < 0 for owner, face in zip(found, faces, strict=True)):
                return found
        # Nobody follows a change between the reading of a name and its keeping: else an old name would stay.
        with self._lock:
            self._follow(revision)
            self._learn({face for face in faces if face >= 0} - self._owners.keys())
            return self._look_up(faces)

    def _look_up(self, faces: Sequence[int]) -> list[FaceOwner | None]:
        return [self._owners.get(face) for face in faces]

    def _follow(self, revision: int) -> None:
        """Forget the owners that changed up to `revision`; all, if there are too many or no collection."""
        if revision > self.sequence:
            try:
                for face in self._store.changes.faces_touched(self._collection, self.sequence):
                    self._owners.pop(face, None)
            except ChangesCompacted:
                self._owners = {}
            self.sequence = revision
        if not revision or len(self._owners) > MOST_KNOWN:
            self._owners = {}

    def _learn(self, faces: set[int]) -> None:
        """Read the owners of `faces` from the store."""
        asked = sorted(faces)
        for first in range(0, len(asked), ASKED_AT_ONCE):
            self._owners |= self._store.lookups.owners_of(asked[first : first + ASKED_AT_ONCE])
