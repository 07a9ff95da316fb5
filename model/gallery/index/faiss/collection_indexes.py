"""The indexes of all collections: loaded from snapshots, caught up before a search, saved beside it."""

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from sameface.model.errors import SamefaceError, StoreUnavailable
from sameface.model.faces import Floats, Keys
from sameface.model.files import exclusive_lock, make_private_folder
from sameface.model.gallery.index.faiss.candidates import choose_kind
from sameface.model.gallery.index.faiss.face_index import FaceIndex
from sameface.model.gallery.index.faiss.follower import Follower
from sameface.model.gallery.index.faiss.loaded_index import LoadedIndex
from sameface.model.gallery.index.faiss.snapshot import (
    FOLDER,
    SnapshotRefused,
    load_snapshot,
    read_sequence,
    save_snapshot,
)
from sameface.model.gallery.index.hits import Hits
from sameface.model.store.changes import ChangesCompacted
from sameface.model.store.records import Collection
from sameface.model.store.store import Store

log = logging.getLogger("sameface.index")

FORGET_SECONDS = 60.0  # between two looks for snapshots that hold a deleted face
FORGET_SHARE = 0.1  # of the time that may be spent on it
COMPARED_FACES = 100  # of a snapshot with the store, to notice a backup that was restored


class CollectionIndexes:
    """An index per collection, in memory: caches that can all be rebuilt from the store."""

    def __init__(self, store: Store, folder: Path, device: str) -> None:
        self.device = device
        self._store = store
        self._folder = folder
        self._held: dict[int, LoadedIndex] = {}
        self._lock = threading.RLock()
        self._upkeep = ThreadPoolExecutor(1, thread_name_prefix="sameface-upkeep")
        self._forgetting: threading.Thread | None = None
        self._closing = threading.Event()
        self._follower = Follower(store, self._held, self._upkeep, self._catch_up)

    def follow(self, collection: Collection) -> FaceIndex:
        """The collection's index, caught up with the revision that the collection was read at."""
        held = self._held.get(collection.key)
        if held is None:
            with self._lock:
                held = self._held.get(collection.key)
                if held is None:
                    self.forget_deleted()
                    held = self._held[collection.key] = self._open(collection)
        held = self._catch_up(held, collection)
        if not held.tended and held.needs_tending:
            held.tended = True
            self._upkeep.submit(self._tend, held)
        return held.index

    def warm_up(self, collections: Sequence[Collection]) -> None:
        """Load the indexes of these collections, and start the background threads."""
        self.forget_deleted()
        for collection in collections:
            self.follow(collection)
        self.keep_forgetting()  # a killed process may have left some who were deleted

    def search(self, collection: Collection, probes: Floats, limit: int, fusion: str, *, exact: bool) -> Hits:
        """For each probe (row) up to `limit` people, most similar first: by their best face or their mean."""
        index = self.follow(collection)
        if fusion == "mean":  # which always compares every person
            return index.search_means(probes, limit)
        return index.search(probes, limit, exact=exact)

    def find_fault(self) -> str | None:
        """None, because an index in memory can always be searched."""
        return None

    def kind_of(self, collection: Collection) -> str:
        """How a collection is searched: `exact`, `codes` or `exact on gpu`."""
        held = self._held.get(collection.key)
        return held.index.kind if held else choose_kind(collection.faces, self.device)

    def lag_of(self, collection: Collection) -> int:
        """The number of changes that the index will follow before its next search."""
        held = self._held.get(collection.key)
        return collection.revision - held.index.sequence if held else collection.revision

    def forget_deleted(self) -> None:
        """Drop the indexes and snapshots of collections that are no longer in the store."""
        kept = self._store.collections.all_keys()
        with self._lock:
            for key in self._held.keys() - kept:
                del self._held[key]
        names = {str(key) for key in kept}
        for path in self._folder.glob("*"):  # snapshots, locks, and partial files of killed processes
            if path.name.split(".")[0] not in names and not self._store.read_only:
                path.unlink(missing_ok=True)

    def keep_forgetting(self) -> None:
        """Start the threads that follow changes early, rewrite snapshots with deleted faces, and compact."""
        with self._lock:
            if self._forgetting is None:
                self._follower.start(self._closing)
                self._store.forget_log_soon()  # it may hold one, too
                self._forgetting = threading.Thread(target=self._forget, name="sameface-forget", daemon=True)
                self._forgetting.start()

    def forget_faces(self) -> None:
        """Rewrite the snapshots that hold a deleted face, whichever process has deleted it."""
        self.forget_deleted()
        for collection in self._store.collections.page():
            path, held = self.path_of(collection), self._held.get(collection.key)
            saved = read_sequence(path, self.owner_of(collection))
            lost = saved < 0 and held and held.saved  # a process without the index has deleted it
            left = any(self._folder.glob(f"{path.name}.*.part"))  # by a killed process
            if lost or left or (saved >= 0 and self._store.changes.has_deletes(collection, saved)):
                self._renew_or_delete(held, collection)

    def close(self) -> None:
        """End the threads, and save the indexes that a restart would have to build again.

        An existing snapshot is rewritten after any change, so that no deleted face stays in the file.
        """
        self._upkeep.shutdown(cancel_futures=True)
        self._closing.set()
        if self._forgetting:
            self._forgetting.join()
        try:
            self.forget_deleted()
            now = {collection.key: collection for collection in self._store.collections.page()}
        except SamefaceError as reason:  # the store was deleted or damaged under this process
            log.warning("indexes are not saved: %s", reason)
            return
        for key, held in list(self._held.items()):  # a copy, because an index that cannot catch up is dropped
            if key in now:
                self._save_last(held, now[key])

    def save(self, held: LoadedIndex, *, wait: bool = False) -> None:
        """Write a snapshot, unless another process has written one as new, or is writing and not `wait`."""
        if self._store.read_only:
            return
        path, owner = self.path_of(held.collection), self.owner_of(held.collection)
        with self._writing(path, wait=wait) as alone:
            if not alone:
                return
            saved = read_sequence(path, owner)
            if saved < held.index.sequence:
                saved = save_snapshot(held.index, path, owner)
            if held.collection.key not in self._store.collections.all_keys():  # deleted meanwhile
                path.unlink(missing_ok=True)
        held.saved = saved  # changes during the write are not in the file

    def load(self, collection: Collection) -> LoadedIndex | None:
        """The index from its snapshot, caught up; None if there is no snapshot. Raises if it is not sound."""
        path = self.path_of(collection)
        if not path.exists():
            return None
        index = load_snapshot(path, self.owner_of(collection), self.device)
        if index.sequence > max(collection.revision, self._store.changes.latest(collection)):
            raise SnapshotRefused("it is ahead of the store, which must have been put back")
        saved, newest = index.sequence, index.columns.faces[-COMPARED_FACES:].copy()
        try:
            index.follow(collection.revision, partial(self._store.changes.since, collection))
        except ChangesCompacted:
            raise SnapshotRefused("the changes since it are no longer kept") from None
        self._compare(collection, index, newest)
        return LoadedIndex(collection, index, saved)

    def build(self, collection: Collection) -> LoadedIndex:
        """A new index from the store alone, caught up."""
        index = FaceIndex(collection.dimension, self.device)
        index.follow(collection.revision, partial(self._store.changes.since, collection))
        return LoadedIndex(collection, index, 0)

    def renew(self, collection: Collection) -> None:
        """Replace the snapshot by one that is built from the store alone."""
        held = self.build(collection)
        if held.index.needs_rebuilding:
            held.index.rebuild()
        self.path_of(collection).unlink(missing_ok=True)
        self.save(held, wait=True)

    def path_of(self, collection: Collection) -> Path:
        """The file of the collection's snapshot."""
        return self._folder / f"{collection.key}.index"

    def owner_of(self, collection: Collection) -> dict[str, Any]:
        """The header fields by which a snapshot is known as this collection's."""
        return {
            "store": self._store.id,
            "collection": collection.key,
            "identity": collection.identity,
            "dimension": collection.dimension,
        }

    def _open(self, collection: Collection) -> LoadedIndex:
        """The index from its snapshot if that is sound, else an empty one, which follows every change."""
        held = None
        try:
            held = self.load(collection)
        except (SnapshotRefused, OSError) as reason:
            if not self._store.read_only:
                self.path_of(collection).unlink(missing_ok=True)
            log.warning("the snapshot of %s is not used, the store is read: %s", collection.name, reason)
        return held or LoadedIndex(collection, FaceIndex(collection.dimension, self.device), 0)

    def _catch_up(self, held: LoadedIndex, collection: Collection) -> LoadedIndex:
        """Follow to the collection's revision. An index that fails is dropped, unless the store is away:
        it then stays as of the last whole block. One whose changes are no longer kept is replaced."""
        if held.index.sequence >= collection.revision:
            return held
        try:
            held.index.follow(collection.revision, partial(self._store.changes.since, collection))
        except ChangesCompacted:
            with self._lock:
                if self._held.get(collection.key) is held:
                    self._held[collection.key] = self.build(collection)
                return self._held[collection.key]
        except Exception as failure:
            if not isinstance(failure, StoreUnavailable):
                self._held.pop(collection.key, None)
            raise
        return held

    def _compare(self, collection: Collection, index: FaceIndex, faces: Keys) -> None:
        """Raise if `faces` differ from the store's: a restored backup may have others under the same keys."""
        rows = index.columns.find_rows(faces)
        held = index.columns.block(rows[index.columns.alive[rows]])
        if held != self._store.changes.find_faces(collection, held.faces):
            raise SnapshotRefused("its faces are not those of the store")

    def _tend(self, held: LoadedIndex) -> None:
        """Rebuild the index if needed and save it, on the upkeep thread, while searches go on."""
        try:
            if held.index.needs_rebuilding:
                held.index.rebuild()
            self.save(held)
            held.failed = None
        except Exception:  # searches go on, and the store has everything
            log.exception("the index of %s cannot be rebuilt or saved yet", held.collection.name)
            held.failed = held.index.sequence  # tried again when as much has changed once more
        held.tended = False

    @contextmanager
    def _writing(self, path: Path, *, wait: bool) -> Iterator[bool]:
        """Hold the lock to write the snapshot `path`; yields False if another process does, unless `wait`."""
        make_private_folder(self._folder)
        with exclusive_lock(path.with_suffix(".lock"), wait=wait) as alone:
            if alone:
                for part in self._folder.glob(f"{path.name}.*.part"):  # left by a killed process
                    part.unlink(missing_ok=True)
            yield alone

    def _forget(self) -> None:
        """The loop of the thread `sameface-forget`: forget faces, note and compact changes, until `close`."""
        pause = FORGET_SECONDS
        while not self._closing.wait(pause):
            began = time.monotonic()
            try:
                self.forget_faces()
                self._follower.note()
                self._follower.compact()
            except Exception as reason:  # tried again after the pause
                log.warning("snapshots may hold deleted faces, and changes be kept, for longer: %s", reason)
            pause = max(FORGET_SECONDS, (time.monotonic() - began) / FORGET_SHARE)

    def _renew_or_delete(self, held: LoadedIndex | None, collection: Collection) -> None:
        """Write a snapshot anew; without the index, or if it cannot be written, delete it."""
        try:
            if held:
                self.save(self._catch_up(held, collection), wait=True)
                return
        except OSError as reason:
            log.warning("the snapshot of %s cannot be written: %s", collection.name, reason)
        path = self.path_of(collection)
        with self._writing(path, wait=True):
            path.unlink(missing_ok=True)

    def _save_last(self, held: LoadedIndex, collection: Collection) -> None:
        """Save an index before the process ends, if a restart would miss it; a failure is only logged."""
        try:
            held = self._catch_up(held, collection)
            if held.worth_saving:
                self.save(held, wait=True)
        except Exception:  # the store has everything
            log.exception("the index of %s cannot be saved", collection.name)


def open_indexes(store: Store, device: str = "cpu") -> CollectionIndexes:
    """The indexes of a store, with their snapshots in the folder `indexes` of its caches."""
    return CollectionIndexes(store, store.folder / FOLDER, device)
