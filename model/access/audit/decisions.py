"""Keeps a server's decisions in the audit, written by a thread of its own, which also seals and cuts it."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from sameface.model.access.audit.seals import cut_audit, seal_audit
from sameface.model.access.secret_key import secret_key_of
from sameface.model.errors import AlreadyExists
from sameface.model.observer import SILENT, Observer
from sameface.model.store.access.audit import Columns
from sameface.model.store.store import Store

log = logging.getLogger("sameface.audit")

WRITING = "writing"  # the step, in logs
GATHER_SECONDS = 0.5  # from the first decision to the transaction that it is written in, with those since
MOST_WAITING = 20_000  # decisions that wait to be written, some 10 MB; those after them are lost
ROOM_SECONDS = 5.0  # that a batch waits for room at most
LOOK_SECONDS = 0.01  # from one look for room to the next
WRITTEN_AT_ONCE = 1_000  # in a transaction, while other writers wait
SEAL_SECONDS = 60.0
SEAL_ENTRIES = 2_000  # decisions after which a seal does not wait for its minute
CUT_SECONDS = 3600.0
JUMP_SECONDS = 60.0  # by which the clock may have jumped in this time if entries are to be cut by it


class Decisions:
    """Takes decisions from any thread, and writes them within a second.

    Entries are kept for `days`; with 0 no decision is written.
    """

    def __init__(self, store: Store, days: int, observer: Observer = SILENT) -> None:
        secret_key_of(store)  # a key that is refused keeps the server from starting, instead of from sealing
        self._store = store
        self._days = days
        self._observer = observer
        self._waiting: list[Columns] = []
        self._lock = threading.Lock()  # guards what waits
        self._came = threading.Event()
        self._stop = threading.Event()
        self._failing: set[str] = set()  # the steps that failed last time, which is logged once
        self._unsealed = 0
        self._sealed_at = time.monotonic() - SEAL_SECONDS  # so that what others left is sealed at the start
        self._clocks = time.time(), time.monotonic()  # at the start, or when the audit was last cut
        self._came.set()
        self._thread = threading.Thread(target=self._work, name="sameface-audit", daemon=True)
        self._thread.start()

    def record(self, entries: Sequence[Columns]) -> None:
        """Take decisions to write; those for which there is no room are counted as lost."""
        if not self._days:
            return
        with self._lock:
            room = max(0, MOST_WAITING - len(self._waiting))
            self._waiting += entries[:room]
        self._came.set()
        if len(entries) > room:
            self._observer.lost_decisions(len(entries) - room)

    async def record_patiently(self, entries: Sequence[Columns]) -> None:
        """Take decisions once there is room for them, after `ROOM_SECONDS` or if writing fails at the latest.

        A batch may decide faster than the audit is written. Whoever is cancelled meanwhile has decided, too.
        """
        ends = time.monotonic() + ROOM_SECONDS
        try:
            while not self._has_room(len(entries)) and time.monotonic() < ends:
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            self.record(entries)

    def close(self) -> None:
        """Write and seal what waits, and end the thread."""
        self._stop.set()
        self._came.set()
        self._thread.join()
        if self._waiting:
            log.error("%d decisions could not be written into the audit", len(self._waiting))
            self._observer.lost_decisions(len(self._waiting))

    def _has_room(self, count: int) -> bool:
        """Whether nothing is gained by waiting: `count` decisions fit, or writing fails now."""
        return not self._days or len(self._waiting) + count <= MOST_WAITING or WRITING in self._failing

    def _work(self) -> None:
        """Write decisions when they come, seal them every minute, and cut old entries every hour."""
        while not self._stop.is_set():
            self._came.wait(SEAL_SECONDS)
            self._stop.wait(GATHER_SECONDS)
            self._came.clear()
            self._try(WRITING, self._write)
            now = time.monotonic()
            if self._unsealed >= SEAL_ENTRIES or now - self._sealed_at >= SEAL_SECONDS:
                self._try("sealing", self._seal)
            if now - self._clocks[1] >= CUT_SECONDS:
                self._try("cutting", self._cut)
        self._try(WRITING, self._write)
        self._try("sealing", self._seal)

    def _try(self, step: str, work: Callable[[], None]) -> None:
        """Do a step; a failure is logged, without anything of an entry, and the step is tried again later."""
        try:
            work()
            self._failing.discard(step)
        except Exception as error:  # a thread that ends would lose all decisions from then on
            if step not in self._failing:
                log.error("%s the audit failed, and is tried again: %s", step, error)
            self._failing.add(step)

    def _write(self) -> None:
        """Write the decisions that wait; they go on waiting if that fails."""
        while some := self._waiting[:WRITTEN_AT_ONCE]:
            try:
                self._store.audit.record(some)
            except BaseException:
                self._came.set()
                raise
            with self._lock:
                del self._waiting[: len(some)]
            self._unsealed += len(some)

    def _seal(self) -> None:
        """Seal all entries, those of other processes too."""
        with suppress(AlreadyExists):  # another process has sealed them at the same moment
            seal_audit(self._store)
        self._unsealed, self._sealed_at = 0, time.monotonic()

    def _cut(self) -> None:
        """Cut entries older than the days to keep, unless the clock has jumped: it may jump back."""
        (wall, steady), self._clocks = self._clocks, (time.time(), time.monotonic())
        if abs((self._clocks[0] - wall) - (self._clocks[1] - steady)) > JUMP_SECONDS:
            log.warning("the clock has jumped: the audit is cut an hour from now, if it does not jump again")
            return
        cut_audit(self._store, self._days)
