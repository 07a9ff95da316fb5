"""The indexes of all collections: opened from snapshots, caught up before a search, tended beside it."""

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sameface.model.faces import Keys
from sameface.model.files import exclusive_lock
from sameface.model.gallery.index.face_index import FaceIndex
from sameface.model.gallery.index.faiss_search import choose_kind
from sameface.model.gallery.index.snapshot import (
    SnapshotRefused,
    load_snapshot,
    read_sequence,
    save_snapshot,
)
from sameface.model.store.records import Collection
from sameface.model.store.store import Store

log = logging.getLogger("sameface.index")

SAVE_CHANGES = 1_000  # fewer than these are replayed faster than a snapshot is loaded
SAVE_SHARE = 0.1  # of the faces may have changed before a snapshot is written anew
COMPARED_FACES = 100  # the newest of a snapshot, to notice a store that was put back


@dataclass(slots=True, eq=False)
class Held:
    """An index in memory, and how far its upkeep is."""

    collection: Collection
    index: FaceIndex
    saved: int  # the sequence of its snapshot, 0 if there is none
    failed: int | None = None  # the sequence at which tending it failed, unless it has worked since
    tended: bool = False  # now, or soon

    @property
    def unsaved(self) -> int:
        """FaceChanges since the snapshot."""
        return self.index.sequence - self.saved

    @property
    def needs_tending(self) -> bool:
        """Whether much has changed since it was built or saved, or since that was tried in vain."""
        due = max(SAVE_CHANGES, SAVE_SHARE * self.index.columns.count)
        if self.failed is not None and self.index.sequence - self.failed < due:
            return False
        return self.unsaved >= due or self.index.needs_rebuilding


class CollectionIndexes:
    """What searches need of the store, in memory; all of it can be made again."""

    def __init__(self, store: Store, folder: Path, device: str) -> None:
        self.device = device
        self._store = store
        self._folder = folder
        self._held: dict[int, Held] = {}
        self._lock = threading.RLock()
        self._upkeep = ThreadPoolExecutor(1, thread_name_prefix="sameface-upkeep")

    def follow(self, collection: Collection) -> FaceIndex:
        """The collection's index, caught up with the revision that the collection was read at."""
        held = self._held.get(collection.key)
        if held is None:
            with self._lock:
                held = self._held.get(collection.key)
                if held is None:
                    self.forget_deleted()
                    held = self._held[collection.key] = self._open(collection)
        self._catch_up(held, collection)
        if not held.tended and held.needs_tending:
            held.tended = True
            self._upkeep.submit(self._tend, held)
        return held.index

    def kind_of(self, collection: Collection) -> str:
        """How a collection is searched."""
        held = self._held.get(collection.key)
        return held.index.kind if held else choose_kind(collection.faces, self.device)

    def lag_of(self, collection: Collection) -> int:
        """FaceChanges that the index has yet to follow, which it does before its next search."""
        held = self._held.get(collection.key)
        return collection.revision - held.index.sequence if held else collection.revision

    def forget_deleted(self) -> None:
        """Let go of the collections that are no longer in the store, and of their snapshots."""
        kept = self._store.collections.all_keys()
        with self._lock:
            for key in self._held.keys() - kept:
                del self._held[key]
        names = {str(key) for key in kept}
        for path in self._folder.glob("*"):  # snapshots, their locks, and what a killed process was writing
            if path.name.split(".")[0] not in names:
                path.unlink(missing_ok=True)

    def close(self) -> None:
        """Finish what is being tended, and save what a restart would have to read again.

        A snapshot that is there is written again if anything has changed, so that nobody deleted stays in it.
        """
        self._upkeep.shutdown(cancel_futures=True)
        self.forget_deleted()
        now = {collection.key: collection for collection in self._store.collections.page()}
        for key, held in list(self._held.items()):  # one that cannot catch up is forgotten
            if key in now:
                self._save_last(held, now[key])

    def save(self, held: Held, *, wait: bool = False) -> None:
        """Write a snapshot, unless another process has done so, or does and need not be waited for."""
        path, owner = self.path_of(held.collection), self.owner_of(held.collection)
        with exclusive_lock(path.with_suffix(".lock"), wait=wait) as alone:
            if not alone:
                return
            for part in self._folder.glob(f"{path.name}.*.part"):  # of a process that was killed
                part.unlink(missing_ok=True)
            saved = read_sequence(path, owner)
            if saved < held.index.sequence:
                saved = save_snapshot(held.index, path, owner)
            if held.collection.key not in self._store.collections.all_keys():  # deleted meanwhile
                path.unlink(missing_ok=True)
        held.saved = saved  # what has changed while it was written is not in it

    def load(self, collection: Collection) -> Held | None:
        """From the snapshot, caught up; None if there is no snapshot, and refused if it is not sound."""
        path = self.path_of(collection)
        if not path.exists():
            return None
        index = load_snapshot(path, self.owner_of(collection), self.device)
        if index.sequence > max(collection.revision, self._store.changes.latest(collection)):
            raise SnapshotRefused("it is ahead of the store, which must have been put back")
        saved, newest = index.sequence, index.columns.faces[-COMPARED_FACES:].copy()
        index.follow(collection.revision, partial(self._store.changes.since, collection))
        self._compare(collection, index, newest)
        return Held(collection, index, saved)

    def build(self, collection: Collection) -> Held:
        """From the store alone, caught up."""
        index = FaceIndex(collection.dimension, self.device)
        index.follow(collection.revision, partial(self._store.changes.since, collection))
        return Held(collection, index, 0)

    def renew(self, collection: Collection) -> None:
        """Put a snapshot that is made from the store in the place of whatever is there."""
        held = self.build(collection)
        if held.index.needs_rebuilding:
            held.index.rebuild()
        self.path_of(collection).unlink(missing_ok=True)
        self.save(held, wait=True)

    def path_of(self, collection: Collection) -> Path:
        """Where the collection's snapshot is."""
        return self._folder / f"{collection.key}.index"

    def owner_of(self, collection: Collection) -> dict[str, Any]:
        """By what a snapshot must be known to be taken."""
        return {
            "store": self._store.id,
            "collection": collection.key,
            "identity": collection.identity,
            "dimension": collection.dimension,
        }

    def _open(self, collection: Collection) -> Held:
        """From the snapshot if it is sound, and to be read from the store else."""
        held = None
        try:
            held = self.load(collection)
        except (SnapshotRefused, OSError) as reason:
            self.path_of(collection).unlink(missing_ok=True)
            log.warning("the snapshot of %s is not used, the store is read: %s", collection.name, reason)
        return held or Held(collection, FaceIndex(collection.dimension, self.device), 0)

    def _catch_up(self, held: Held, collection: Collection) -> None:
        """Follow to the collection's revision; an index that cannot is forgotten and made anew."""
        if held.index.sequence >= collection.revision:
            return
        try:
            held.index.follow(collection.revision, partial(self._store.changes.since, collection))
        except Exception:
            self._held.pop(collection.key, None)
            raise

    def _compare(self, collection: Collection, index: FaceIndex, faces: Keys) -> None:
        """With the store: a backup that was put back and written to has other faces under the same keys."""
        rows = index.columns.find_rows(faces)
        held = index.columns.block(rows[index.columns.alive[rows]])
        if held != self._store.changes.find_faces(collection, held.faces):
            raise SnapshotRefused("its faces are not those of the store")

    def _tend(self, held: Held) -> None:
        """Rebuild and save, beside the searches."""
        try:
            if held.index.needs_rebuilding:
                held.index.rebuild()
            self.save(held)
            held.failed = None
        except Exception:  # searches go on, and the store has everything
            log.exception("the index of %s cannot be rebuilt or saved yet", held.collection.name)
            held.failed = held.index.sequence  # when as much has changed again, so is this tried
        held.tended = False

    def _save_last(self, held: Held, collection: Collection) -> None:
        """Before the end, if a restart would miss it; whatever happens, the others have their turn."""
        try:
            self._catch_up(held, collection)
            if held.unsaved >= (1 if held.saved else SAVE_CHANGES):
                self.save(held, wait=True)
        except Exception:  # the store has everything
            log.exception("the index of %s cannot be saved", collection.name)


def open_indexes(store: Store, device: str = "cpu") -> CollectionIndexes:
    """The indexes of a store, with their snapshots beside its file."""
    return CollectionIndexes(store, store.path.with_name("indexes"), device)
