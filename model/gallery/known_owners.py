"""The owners of faces in memory, so that naming the people whom a search finds takes no query per block."""

import threading
from collections.abc import Sequence

from sameface.model.store.changes import ChangesCompacted
from sameface.model.store.records import Collection, CollectionState, FaceOwner
from sameface.model.store.store import Store

MOST_KNOWN = 250_000  # faces of one collection, some 75 MB


class KnownOwners:
    """A cache of one collection, from face key to owner, as of the change number `sequence`.

    It holds only owners that `find` was asked for: many faces are never found, and a start need not wait.
    """

    def __init__(self, store: Store, collection: Collection) -> None:
        self.sequence = collection.revision
        self._store = store
        self._collection = collection
        self._owners: dict[int, FaceOwner] = {}
        self._lock = threading.Lock()

    def find(self, faces: Sequence[int]) -> tuple[CollectionState | None, list[FaceOwner | None]]:
        """The collection's state, and the owner of each face key, as the store has them now.

        The owner is None for -1 and for a face that is deleted, the state if the collection is deleted. The
        store is asked for both at once, so every change is seen that was committed before this call; and
        again for owners that have changed since.
        """
        unasked = {face for face in faces if face >= 0}
        found: dict[int, FaceOwner] = {}
        unknown = {face for face in unasked if face not in self._owners}
        while True:
            state, owners = self._store.lookups.owners_of(self._collection, unknown)
            unasked -= unknown
            found |= owners
            with self._lock:
                self._keep(state.revision if state else 0, owners)
                unknown = {face for face in unasked if face not in self._owners}
                if not unknown:
                    return state, [found.get(face) or self._owners.get(face) for face in faces]

    def _keep(self, revision: int, owners: dict[int, FaceOwner]) -> None:
        """Follow the changes up to `revision`; keep `owners` as of then, unless later ones were followed."""
        if revision > self.sequence:
            try:
                for face in self._store.changes.faces_touched(self._collection, self.sequence):
                    self._owners.pop(face, None)
            except ChangesCompacted:
                self._owners = {}
            self.sequence = revision
        if not revision or len(self._owners) > MOST_KNOWN:
            self._owners = {}
        if revision == self.sequence:
            self._owners |= owners
