"""The people of all collections, whatever recogniser they are of: looked up, changed and forgotten."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from sameface.model.data_folder import GalleryPlace
from sameface.model.faces import Floats
from sameface.model.gallery.index.faiss.collection_indexes import open_indexes
from sameface.model.observer import SILENT, Observer
from sameface.model.parallel import Threads
from sameface.model.store.records import (
    Collection,
    Person,
    RememberedResponse,
)
from sameface.model.store.store import Store

READERS = 4  # threads that look people up
WRITERS = 2  # threads that write, one at a time in the database anyway


class Roster:
    """The store's collections and people, of any recogniser, and the threads that read and write them."""

    def __init__(self, place: GalleryPlace, observer: Observer = SILENT) -> None:
        self.place = place
        self._store: Store | None = None
        self._opening = threading.Lock()
        observe = partial(observer.stage, "store")  # a stage like those of a photo
        self.readers = Threads(READERS, "read", observe)
        self.writers = Threads(WRITERS, "write", observe)

    @property
    def store(self) -> Store:
        """The store, opened on first use, because comparing two photos needs none."""
        if self._store is None:
            with self._opening:
                self._store = self._store or Store(self.place)
        return self._store

    def close(self) -> None:
        """Finish the calls that run, cancel those that wait, and close the store."""
        self.readers.close()
        self.writers.close()
        if self._store:
            self._store.close()

    def get_collection(self, name: str) -> Collection:
        """The collection `name`."""
        return self.store.collections.get(name)

    def list_collections(
        self, limit: int | None = None, after: str = "", within: Sequence[str] | None = None
    ) -> list[Collection]:
        """Up to `limit` collections after the name `after`, of the names or prefixes `within`."""
        return self.store.collections.page(limit, after, within)

    def delete_collection(self, name: str) -> None:
        """Delete a collection with all its people and faces, and its index."""
        self.store.collections.delete(name)
        open_indexes(self.store).forget_deleted()

    def get_person(self, collection: Collection, person_id: str) -> Person:
        """A person with all faces."""
        return self.store.people.get(collection, person_id)

    def list_people(self, collection: Collection, limit: int, after: str = "") -> list[Person]:
        """Up to `limit` people by id, from the first whose id is greater than `after`."""
        return self.store.people.page(collection, limit, after)

    def update_person(self, collection: Collection, person_id: str, values: dict[str, Any]) -> Person:
        """Set a person's name, metadata or both; returns the changed person."""
        self.store.people.update(collection, person_id, values)
        return self.get_person(collection, person_id)

    def forget_person(self, collection: Collection, person_id: str) -> None:
        """Delete a person with all faces and crops: gone from every answer once this returns."""
        self.store.people.delete(collection, person_id)
        self._forget_snapshot(collection)

    def forget_face(self, collection: Collection, person_id: str, face_id: str) -> None:
        """Delete one face of a person."""
        self.store.people.delete_face(collection, person_id, face_id)
        self._forget_snapshot(collection)

    def forget_everybody(self, collection: Collection) -> tuple[int, int]:
        """Delete all people of a collection; returns how many people and faces there were."""
        gone = self.store.wholesale.delete_all(collection)
        self._forget_snapshot(collection)
        return gone

    def get_own_embeddings(
        self, collection: Collection, person_ids: Sequence[str]
    ) -> dict[str, dict[str, Floats]]:
        """By person id and face id: the embeddings of these people's faces."""
        return self.store.people.embeddings_of(collection, person_ids)

    def find_photos(self, collection: Collection, photos: Sequence[str]) -> dict[str, list[str]]:
        """By SHA-256 of the photos that were enrolled before: the ids of their people, earliest first."""
        return self.store.lookups.owners_of_photos(collection, photos) if photos else {}

    def find_responses(
        self, collection: Collection, idempotency_keys: Sequence[str]
    ) -> dict[str, RememberedResponse]:
        """The responses that were remembered in the last day, by idempotency key."""
        if not idempotency_keys:
            return {}
        found = self.store.idempotency_keys.find(collection, idempotency_keys)
        enrolled = [each.response["person_id"] for each in found.values()]
        known = self.store.people.existing(collection, enrolled)
        return {
            key: replace(each, forgotten=each.response["person_id"] not in known)
            for key, each in found.items()
        }

    def _forget_snapshot(self, collection: Collection) -> None:
        """Delete the snapshot, which holds who was deleted; without an index it cannot be written anew."""
        open_indexes(self.store).path_of(collection).unlink(missing_ok=True)
