"""The limits of a minute over all machines: each takes leases from the store for its processes."""

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sameface.model.access.limits.counters import Counters
from sameface.model.files import open_private
from sameface.model.store.access.leases import LEASE_SECONDS, Leases


class SharedLimits:
    """This machine's leases, kept in its counters, so that most requests need no query of the store."""

    def __init__(self, counters: Counters, leases: Leases, folder: Path) -> None:
        self._counters = counters
        self._leases = leases
        self._lock = folder / "leasing"

    def try_take(self, number: int, what: str, needed: int) -> bool:
        """Take `needed` of what is leased for the key with this number; False if that is less."""
        with self._counters.locked():
            lease = self._counters.place(number)["leased"][what]
            if not 0 <= lease["until"] - time.monotonic() <= LEASE_SECONDS or lease["left"] < needed:
                return False
            lease["left"] -= needed
            return True

    def take(self, number: int, what: str, limit: int, needed: int) -> int:
        """Take `needed`, leasing more from the store; returns 0, or the seconds to wait if there is none."""
        with self._alone():
            if self.try_take(number, what, needed):  # another thread or process has just leased some
                return 0
            self._give_back(number, what)
            began = time.monotonic()
            taken = self._leases.take(number, what, limit, needed)
            if not taken.amount:
                return taken.wait_seconds
            with self._counters.locked():
                lease = self._counters.place(number)["leased"][what]
                lease["key"], lease["left"] = taken.key, taken.amount - needed
                lease["until"] = began + LEASE_SECONDS
        return 0

    def _give_back(self, number: int, what: str) -> None:
        """Return the unused rest of the current lease to the store, before another one is taken."""
        with self._counters.locked():
            lease = self._counters.place(number)["leased"][what]
            key, left = int(lease["key"]), int(lease["left"])
            lease["left"] = 0
        if left:
            self._leases.give_back(key, left)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the lock between the threads and processes of this machine that ask the store."""
        with open_private(self._lock) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
