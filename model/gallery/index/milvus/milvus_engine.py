"""Search with candidates from Milvus, ranked by the store's embeddings, and the newest changes in memory."""

import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from sameface.model.data_folder import MilvusAddress
from sameface.model.errors import IndexUnavailable, InvalidArgument, SamefaceError
from sameface.model.faces import Floats, Keys
from sameface.model.gallery.index.embedding_rows import EmbeddingRows
from sameface.model.gallery.index.faiss.candidates import rank_candidates
from sameface.model.gallery.index.hits import Hits, best_of_each
from sameface.model.gallery.index.milvus.faces_in_milvus import (
    MOST_HITS,
    FacesInMilvus,
    name_collection,
    unavailable,
)
from sameface.model.gallery.index.milvus.feeder import LEASE_SECONDS, TRUST_SECONDS, Feeder
from sameface.model.gallery.index.milvus.tail import Tail
from sameface.model.gallery.index.person_means import PersonMeans
from sameface.model.store.changes import ChangesCompacted
from sameface.model.store.records import Collection, FaceBlock, Feed
from sameface.model.store.store import Store

log = logging.getLogger("sameface.index")

LOOKS = 3  # at the store, before a mark that Milvus has not is taken for lost; and for one search
MOST_TAIL = 100_000  # changes of a collection in memory: 50 MB of 128 numbers
SPARE = 10  # faces beside those that are needed: for marks, and for what was deleted
MARKS = 20  # more than a collection ever has: a feeder sends one a second, and deletes it after ten
MEAN_PEOPLE = 4  # times `limit`: found by a face, before their means are compared


@dataclass(frozen=True, slots=True)
class Look:
    """What the last look at store and Milvus found: how far each collection was fed, and can be relied on."""

    at: float = -math.inf
    feeds: dict[int, Feed | None] = field(default_factory=dict)  # None: Milvus does not have the mark
    failure: SamefaceError | None = None

    def covers(self, keys: Sequence[int]) -> bool:
        """Whether a search of the collections with these keys may rely on it."""
        known = self.failure is not None or all(key in self.feeds for key in keys)
        return known and time.monotonic() - self.at < TRUST_SECONDS


class MilvusEngine:
    """Searches the collections of one recogniser, whose faces are in one collection of Milvus."""

    def __init__(self, store: Store, address: MilvusAddress, identity: str, dimension: int) -> None:
        self.faces = FacesInMilvus(address, name_collection(store.id, identity), dimension)
        self.feeder = Feeder(store, self.faces, identity)
        self._store = store
        self._identity = identity
        self._tails: dict[int, Tail] = {}
        self._look = Look()
        self._looking = threading.Lock()

    def warm_up(self, _: Sequence[Collection]) -> None:
        """Start to feed Milvus; raises if it refuses this gallery, but not if it is away."""
        failure = self._look_again().failure
        if failure and not isinstance(failure, IndexUnavailable):
            raise failure
        if failure:
            log.warning("%s", failure)
        self.feeder.start()

    def search(self, collection: Collection, probes: Floats, limit: int, fusion: str, *, exact: bool) -> Hits:
        """For each probe (row) up to `limit` people, most similar first: by their best face or their mean."""
        if exact:
            raise InvalidArgument(
                "exact: this server searches with Milvus, which does not compare every face."
            )
        self.feeder.start()
        if fusion == "mean":
            return self._search_means(collection, probes, limit)
        return self._search_faces(collection, probes, limit)

    def kind_of(self, _: Collection) -> str:
        """How a collection is searched: `milvus`."""
        return "milvus"

    def lag_of(self, collection: Collection) -> int:
        """The number of changes that searches do not yet leave to Milvus."""
        return collection.revision - self._store.feeds.get(collection).sequence

    def find_fault(self) -> str | None:
        """Why nothing can be searched now; None if it can."""
        if not self._looking.locked():  # else somebody waits for Milvus, and what was found last counts
            self._look_again()
        return self._look.failure.detail if self._look.failure else None

    def forget_deleted(self) -> None:
        """Drop the tails of collections that are no longer in the store; feeding has Milvus drop the rest."""
        for key in self._tails.keys() - self._store.collections.all_keys():
            self._tails.pop(key, None)
        self.feeder.start()

    def keep_forgetting(self) -> None:
        """Start the feeder, which also deletes faces from Milvus that the store no longer has."""
        self.feeder.start()

    def close(self) -> None:
        """Stop feeding, and close the connection."""
        self.feeder.close()
        self.faces.close()

    def _search_faces(self, collection: Collection, probes: Floats, limit: int) -> Hits:
        for _ in range(LOOKS):
            feed, tail, looked_at = self._follow(collection)
            newest = tail.search(probes, limit)
            if not feed.mark or not limit:
                return newest
            found = self._find_in_milvus(collection, probes, limit, feed.sequence)
            if time.monotonic() - looked_at < LEASE_SECONDS:  # else what it relied on may have been deleted
                return merge(found, newest, limit)
        raise unavailable(f"takes longer than {LEASE_SECONDS:.0f} seconds for a search")

    def _search_means(self, collection: Collection, probes: Floats, limit: int) -> Hits:
        """Rank the people who are found by a face, by the mean of all faces that the store has of them."""
        near = self._search_faces(collection, probes, min(collection.people, limit * MEAN_PEOPLE + SPARE))
        known = read_rows(partial(self._store.changes.faces_of, collection), near.people)
        means = PersonMeans(known).rows
        return rank(means, locate(means.people, near.people), probes, limit)

    def _find_in_milvus(self, collection: Collection, probes: Floats, limit: int, fed: int) -> Hits:
        """Candidates from Milvus, ranked by the store's embeddings; more of them while people are missing.

        Milvus may still have what was deleted after the change number `fed`.
        """
        found, missing = Hits.none(len(probes), limit), np.arange(len(probes))
        most = min(collection.faces + max(collection.revision - fed, 0) + MARKS, MOST_HITS)
        count = SPARE + limit * math.ceil(collection.faces / max(collection.people, 1))
        while len(missing):
            try:
                keys = self.faces.search(collection.key, probes[missing], min(count, most))
            except IndexUnavailable:
                self._look = Look()  # whatever it was, nothing is relied on before another look
                raise
            known = read_rows(partial(self._store.changes.find_faces, collection), keys)
            found.put(missing, rank(known, locate(known.faces, keys), probes[missing], limit))
            missing = missing[found.faces[missing, -1] < 0] if count < most else missing[:0]
            count *= 4
        return found

    def _follow(self, collection: Collection) -> tuple[Feed, Tail, float]:
        """How far Milvus can be relied on, the caught-up tail of what came after, and when that was seen."""
        try:
            return self._catch_up(collection)
        except ChangesCompacted:
            self._look = Look()  # the feed may have moved on since, and what is before it is not kept
        try:
            return self._catch_up(collection)
        except ChangesCompacted:
            raise unavailable("was away longer than changes are kept, and is being filled again") from None

    def _catch_up(self, collection: Collection) -> tuple[Feed, Tail, float]:
        """The same as of one look; raises `ChangesCompacted` if changes after that are no longer kept."""
        look = self._look_again(collection.key)
        if look.failure:
            raise look.failure
        feed = look.feeds[collection.key]
        if feed is None:
            raise unavailable("has lost this collection, and is being filled again")
        tail = self._tails.get(collection.key)
        if tail is None or tail.start > feed.sequence:
            tail = self._tails[collection.key] = Tail(collection.dimension, feed.sequence)
        elif tail.start < feed.sequence:
            tail.trim(feed.sequence)
        if collection.revision - feed.sequence > MOST_TAIL:
            raise unavailable(f"is {collection.revision - feed.sequence} changes behind")
        try:
            tail.follow(collection.revision, partial(self._store.changes.since, collection))
        except ChangesCompacted:
            self._tails.pop(collection.key, None)
            raise
        return feed, tail, look.at

    def _look_again(self, *keys: int) -> Look:
        """A fresh look that covers the collections with these `keys`, too.

        One thread at a time looks; while Milvus is away, the others are told so without waiting.
        """
        if self._look.covers(keys):
            return self._look
        if not self._looking.acquire(blocking=self._look.failure is None):
            return self._look
        try:
            if not self._look.covers(keys):
                self._look = self._examine({*self._tails, *keys})
            return self._look
        finally:
            self._looking.release()

    def _examine(self, keys: set[int]) -> Look:
        """Look at store and Milvus; a missing mark may only be an old one, so the store is asked again."""
        at = time.monotonic()
        try:
            for _ in range(LOOKS):
                stored = self._store.feeds.all_of(self._identity)
                feeds = {key: stored.get(key, Feed(key)) for key in keys}
                marks = {feed.mark for feed in feeds.values() if feed.mark}
                lacking = marks - self.faces.find_marks([*marks]) if marks else set()
                if not lacking:
                    break
            if not marks or lacking:
                self.faces.exists()  # raises if it is away, or of another shape
        except SamefaceError as failure:
            return Look(time.monotonic(), failure=failure)
        return Look(at, {key: None if feed.mark in lacking else feed for key, feed in feeds.items()})


def read_rows(read: Callable[[Keys], FaceBlock], keys: Keys) -> EmbeddingRows:
    """What the store has of faces or people with these keys, in the order of the faces; -1 is nobody."""
    block = read(np.unique(keys[keys > 0]))
    return EmbeddingRows.of(block, np.ones(len(block.faces), bool))


def merge(found: Hits, newest: Hits, limit: int) -> Hits:
    """For each probe the `limit` most similar people of both; a person in both appears once."""
    people = np.concatenate([found.people, newest.people], axis=1)
    faces = np.concatenate([found.faces, newest.faces], axis=1)
    similarities = np.concatenate([found.similarities, newest.similarities], axis=1)
    order = np.argsort(np.where(people < 0, np.inf, -similarities), axis=1, kind="stable")
    people, faces = np.take_along_axis(people, order, 1), np.take_along_axis(faces, order, 1)
    return best_of_each(people, faces, np.take_along_axis(similarities, order, 1), limit)


def locate(sorted_keys: Keys, keys: Keys) -> Keys:
    """The place of each key among `sorted_keys`; -1 for one that is not there."""
    if not len(sorted_keys):
        return np.full(keys.shape, -1, np.int64)
    places = np.minimum(np.searchsorted(sorted_keys, keys), len(sorted_keys) - 1)
    return np.where(sorted_keys[places] == keys, places, -1).astype(np.int64)


def rank(known: EmbeddingRows, rows: Keys, probes: Floats, limit: int) -> Hits:
    """For each probe up to `limit` people by the nearest of its `rows`; -1 stands for no row."""
    if not known.count:
        return Hits.none(len(probes), 1)
    rows = np.ascontiguousarray(np.sort(rows, axis=1)[:, ::-1])  # FAISS stops at the first -1
    probes = np.ascontiguousarray(probes)
    similarities, nearest = rank_candidates(rows, probes, known.embeddings, rows.shape[1])
    return known.best_of_each(nearest, similarities, limit)
