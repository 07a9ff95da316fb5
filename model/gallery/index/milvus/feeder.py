"""Sends the changes of the store to Milvus, from one process at a time of all that share a gallery."""

import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterable

from sameface.model.errors import SamefaceError
from sameface.model.gallery.index.milvus.faces_in_milvus import FacesInMilvus, name_collection
from sameface.model.gallery.index.milvus.gone_faces import find_gone
from sameface.model.gallery.index.milvus.sent import FedElsewhere, Sent, take
from sameface.model.store.changes import ChangesCompacted
from sameface.model.store.records import Collection, Feed
from sameface.model.store.store import Store

log = logging.getLogger("sameface.index")

TRUST_SECONDS = 1.0  # for which a search relies on a mark that it has seen
LEASE_SECONDS = 10.0  # before anything is deleted that a search may still rely on: Milvus may take 5 for it
BOUND_SECONDS = 10.0  # after which every search shows what was sent: twice Milvus's `gracefulTime`
PAUSE_SECONDS = 1.0  # between two rounds
VERIFY_SECONDS = 5.0  # between two looks whether Milvus still has its marks
RENEW_SECONDS = 60.0  # without progress until `renew` gives up waiting
WAIT_SECONDS = 3.0  # until a process that does not feed, or failed to, tries again
FEED_ROWS = 10_000  # changes of a collection that are sent in one round
COMPACT_SECONDS = 60.0  # between two times that changes which are needed no more are deleted
SWEEP_SECONDS = 20.0  # between two looks whether Milvus has as many faces as the store
LATE_SECONDS = 300.0  # in which requests of an earlier feeder may still arrive


class Feeder:
    """Feeds the collections of a recogniser to Milvus, on a thread of its own, if no other process does.

    Searches rely on Milvus for a change only `BOUND_SECONDS` after the mark behind it was sent; until then
    they compare it in memory. A feed is the store's record of the last such change and of its mark. If Milvus
    does not have that mark, one of the two has lost data or was restored: the collection is sent anew.
    """

    def __init__(self, store: Store, faces: FacesInMilvus, identity: str) -> None:
        self._store = store
        self._faces = faces
        self._identity = identity
        self._sent: dict[int, Sent] = {}
        self._cleared: set[int] = set()  # collections that were deleted, and that more may arrive of
        self._lacked: dict[int, int] = {}  # by collection: faces that Milvus lacked before it was sent anew
        self._leads: Callable[[], bool] = lambda: False  # whether this process still has the lock
        self._verified = 0.0
        self._compacted = 0.0
        self._led_since = 0.0
        self._swept = 0.0
        self._said = ""
        self._closing = threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Feed from now on."""
        with self._starting:
            if self._thread is None and not self._store.read_only:
                self._thread = threading.Thread(target=self._run, name="sameface-feeder", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Stop feeding, and wait for what is being sent."""
        self._closing.set()
        if self._thread:
            self._thread.join()

    def lead(self) -> None:
        """Feed until closed, while this process holds the lock; returns at once if another holds it."""
        with self._store.locked(f"milvus-{self._identity[:16]}") as leads:
            if not leads:
                return
            self._leads = leads
            self._verified = -VERIFY_SECONDS
            self._led_since = time.monotonic()
            try:
                while not self._closing.is_set():
                    self._refuse_two()
                    if not self.feed():
                        self._closing.wait(PAUSE_SECONDS)
                    self._said = ""
            finally:
                self._sent.clear()
                self._cleared.clear()

    def feed(self) -> bool:
        """Send every collection's next changes; returns whether there are more to send."""
        if time.monotonic() - self._verified >= VERIFY_SECONDS:
            self._verify()
        feeds = self._store.feeds.all_of(self._identity)
        collections = self._store.collections.of_recognizer(self._identity)
        self._clear([feeds[key] for key in feeds.keys() - {each.key for each in collections}])
        more = False
        for collection in collections:
            sent = self._sent.get(collection.key)
            if sent is None:
                sent = self._sent[collection.key] = self._begin(collection, feeds.get(collection.key))
            try:
                if sent.sequence < collection.revision:
                    self._send(collection, sent)
                self._settle(sent)
            except ChangesCompacted:  # Milvus was away for longer than they are kept
                self._reset([sent.feed])
                self._sent.pop(collection.key, None)
            more = more or sent.sequence < collection.revision
        self._tidy(collections)
        return more

    def renew(self, collection: Collection) -> None:
        """Have the process that feeds send a collection anew; wait for it while it makes progress."""
        feed = self._store.feeds.get(collection)
        self._faces.delete([feed.mark] if feed.mark else [])  # that is noticed, as all that Milvus loses
        self.start()
        until = time.monotonic() + RENEW_SECONDS
        while time.monotonic() < until and not self._closing.wait(PAUSE_SECONDS):
            now, sent = self._store.feeds.get(collection), self._sent.get(collection.key)
            if now.mark != feed.mark or (sent and sent.pieces):
                feed, until = now, time.monotonic() + RENEW_SECONDS
            if now.mark and now.sequence >= collection.revision:
                return

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                self.lead()
            except SamefaceError as reason:
                self._say(f"changes wait for Milvus: {reason}")
            except FedElsewhere:
                self._say("changes are sent to Milvus by another process: it goes on")
            except Exception:  # tried again: the store has everything
                log.exception("changes cannot be sent to Milvus yet")
            self._closing.wait(WAIT_SECONDS)

    def _say(self, what: str) -> None:
        """Log the failure `what`; the same one again only after a round without a failure."""
        if what != self._said:
            log.warning("%s", what)
        self._said = what

    def _verify(self) -> None:
        """Reset the feeds whose mark Milvus has lost; make Milvus's collection if there is none."""
        feeds = [feed for feed in self._store.feeds.all_of(self._identity).values() if feed.mark]
        there = self._faces.exists()
        if there:
            self._faces.load()
        known = self._faces.find_marks([feed.mark for feed in feeds]) if there and feeds else set()
        self._reset([feed for feed in feeds if feed.mark not in known])
        if not there:
            self._faces.create()
            self._sent.clear()
        self._verified = time.monotonic()

    def _reset(self, feeds: Iterable[Feed]) -> None:
        """Have these collections sent anew, once no search relies on what Milvus has of them."""
        lost = [feed for feed in feeds if feed.mark]
        for feed in lost:
            log.warning("Milvus and the store do not fit: collection %s is sent anew", feed.collection)
            self._advance(feed, Feed(feed.collection))
            self._sent.pop(feed.collection, None)
        if lost:
            self._closing.wait(LEASE_SECONDS)

    def _clear(self, feeds: Iterable[Feed]) -> None:
        """Clear what Milvus has of collections that were deleted, and again once nothing can be late."""
        for feed in feeds:
            self._sent.pop(feed.collection, None)
            if self._is_early() and feed.collection in self._cleared:
                continue
            cleared = Feed(feed.collection)  # the mark is not taken for lost
            if feed.mark:
                self._advance(feed, cleared)
            self._faces.clear(feed.collection)
            self._cleared.add(feed.collection)
            if not self._is_early():
                self._store.feeds.remove(cleared)

    def _begin(self, collection: Collection, feed: Feed | None) -> Sent:
        """Go on after the feed; without a mark, clear what Milvus has and begin anew."""
        if feed and feed.mark:
            return Sent(feed, feed.sequence, twice=collection.revision)
        if feed:
            self._faces.clear(collection.key)
        return Sent(feed or self._store.feeds.add(collection), 0)

    def _send(self, collection: Collection, sent: Sent) -> None:
        """Send the next changes, or at first the next of all faces that there are, and a mark behind them.

        All faces are those of one snapshot. They may take hours, but a round sends only so many of them.
        """
        sent.pieces = sent.pieces or iter(self._store.changes.since(collection, sent.sequence))
        if not (changes := take(sent.pieces, FEED_ROWS)):  # the collection was deleted
            sent.pieces = None
            return
        if sent.sequence < sent.twice:
            self._faces.delete(changes.came.faces.tolist())
        self._faces.add(collection.key, changes.came)
        self._faces.delete(changes.gone.tolist())
        if not changes.sequence:  # more of all faces comes
            return
        sent.pieces = None
        feed = Feed(collection.key, changes.sequence, -1 - secrets.randbits(62))
        self._faces.add_mark(collection.key, feed.mark)
        sent.marks.append((time.monotonic(), feed))
        sent.sequence = changes.sequence

    def _settle(self, sent: Sent) -> None:
        """Record the newest mark that is old enough to rely on, and delete those before it."""
        now = time.monotonic()
        old = [feed for at, feed in sent.marks if now - at >= BOUND_SECONDS]
        if not old:
            return
        self._advance(sent.feed, old[-1])
        stale = [feed.mark for feed in (sent.feed, *old[:-1]) if feed.mark]
        sent.feed, sent.marks = old[-1], sent.marks[len(old) :]
        self._faces.delete(stale)

    def _tidy(self, collections: Iterable[Collection]) -> None:
        """From time to time, delete old changes from the store and deleted faces from Milvus."""
        if time.monotonic() - self._compacted >= COMPACT_SECONDS:
            self._compact(collections)
        if time.monotonic() - self._swept >= SWEEP_SECONDS:
            self._sweep(collections)

    def _compact(self, collections: Iterable[Collection]) -> None:
        """Record each feed's change number as a follower's; delete the changes that all followers have.

        What was fed for recognisers that no collection belongs to is deleted, too.
        """
        for collection in collections:
            if sent := self._sent.get(collection.key):
                follower = f"milvus-{self._identity[:16]}"
                self._store.followers.note(follower, collection, sent.feed.sequence)
            while self._store.followers.compact(collection):
                pass
        for identity in self._store.feeds.abandoned():  # nobody has to run its recogniser any more
            self._faces.drop(name_collection(self._store.id, identity))
            self._store.feeds.remove_abandoned(identity)
        self._compacted = time.monotonic()

    def _sweep(self, collections: Iterable[Collection]) -> None:
        """Look whether Milvus has the faces of the store, in collections that are wholly sent.

        A late request of an earlier feeder may have deleted some, or brought back what is gone.
        """
        for collection in collections:
            sent = self._sent.get(collection.key)
            if sent is None or sent.marks or sent.sequence != collection.revision:
                continue
            if sent.swept == sent.sequence and not self._is_early():
                continue
            self._compare(collection, sent)
            sent.swept = sent.sequence
        self._swept = time.monotonic()

    def _compare(self, collection: Collection, sent: Sent) -> None:
        """Delete from Milvus the faces that the store no longer has; send all anew if it lacks some."""
        lacking = collection.faces - self._faces.count(collection.key)
        if lacking < 0:
            for keys in find_gone(self._store, self._faces, collection):
                self._faces.delete(keys.tolist())
        elif lacking and lacking != self._lacked.get(collection.key):  # else the store's counter is wrong
            self._reset([sent.feed])
        self._lacked[collection.key] = lacking

    def _is_early(self) -> bool:
        """Whether requests of an earlier feeder, or of this one before a failure, may still arrive."""
        return time.monotonic() - self._led_since < LATE_SECONDS

    def _advance(self, feed: Feed, to: Feed) -> None:
        self._refuse_two()
        if not self._store.feeds.advance(feed, to):
            raise FedElsewhere

    def _refuse_two(self) -> None:
        """Raise if this process has lost its lock, as when the database restarts: another may have it."""
        if not self._leads():
            raise FedElsewhere
