"""Follows the store's changes for the indexes of this process, and records which of them it has."""

import logging
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

from sameface.model.gallery.index.faiss.loaded_index import LoadedIndex
from sameface.model.store.records import Collection
from sameface.model.store.store import Store

log = logging.getLogger("sameface.index")

NOTED_SECONDS = 3_600.0  # after which a follower that has not moved says again that it is there


class Follower:
    """Catches indexes up when others write, and records in the store which changes they no longer need."""

    def __init__(
        self,
        store: Store,
        held: Mapping[int, LoadedIndex],
        upkeep: ThreadPoolExecutor,
        catch_up: Callable[[LoadedIndex, Collection], object],
    ) -> None:
        self.name = secrets.token_hex(8)
        self._store = store
        self._held = held
        self._upkeep = upkeep
        self._catch_up = catch_up
        self._noted: dict[int, tuple[int, float]] = {}  # by collection: the change number, and when

    def start(self, closing: threading.Event) -> None:
        """Start a thread that calls `hear` for each collection that others change, until `closing` is set."""
        arguments = (self.hear, closing)
        listening = threading.Thread(target=self._store.listen, args=arguments, daemon=True)
        listening.start()

    def hear(self, key: int) -> None:
        """Have the index of the collection with this key catch up soon, on the upkeep thread."""
        held = self._held.get(key)
        if held and not held.called:
            held.called = True
            with suppress(RuntimeError):  # the thread has just ended
                self._upkeep.submit(self._catch_up_early, held)

    def note(self) -> None:
        """Record each index's `needed_after` in the store, if it has changed or was recorded an hour ago."""
        now = time.monotonic()
        for key, held in list(self._held.items()):
            needed = held.needed_after
            noted, then = self._noted.get(key, (-1, 0.0))
            if needed != noted or now - then > NOTED_SECONDS:
                self._store.followers.note(self.name, held.collection, needed)
                self._noted[key] = needed, now

    def compact(self) -> None:
        """Delete the changes that no follower needs."""
        for collection in self._store.collections.page():
            while self._store.followers.compact(collection):
                log.info("changes of %s that everybody has are deleted", collection.name)

    def _catch_up_early(self, held: LoadedIndex) -> None:
        held.called = False
        try:
            revision = self._store.changes.latest(held.collection)
            self._catch_up(held, replace(held.collection, revision=revision))
        except Exception as reason:  # the next search tries again, and tells its caller
            log.info("the index of %s catches up later: %s", held.collection.name, reason)
