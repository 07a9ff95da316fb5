"""How much a caller may ask for: requests and photos a minute, and requests at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from sameface.model.access.limits.counters import WINDOW_SECONDS, Counters, Place, seconds_until
from sameface.model.access.limits.shared_limits import SharedLimits
from sameface.model.errors import RateLimited, StorageFull
from sameface.model.store.access.api_key import UNLIMITED, ApiKey, KeyLimits
from sameface.model.store.access.leases import Leases

EVERYBODY = 0  # the place of all callers together; those of keys begin with 1


@dataclass(frozen=True, slots=True)
class Party:
    """A holder of limits: an API key, or all callers together (number `EVERYBODY`)."""

    number: int
    limits: KeyLimits

    @property
    def prefix(self) -> str:
        """What the names of its limits begin with."""
        return "all-" if self.number == EVERYBODY else ""

    def says(self, what: str) -> str:
        """A sentence about a limit."""
        return f"{'All callers together' if self.number == EVERYBODY else 'This key'} may {what}."


@dataclass(frozen=True, slots=True)
class Standing:
    """One limit as the `RateLimit` headers show it: quota, what remains, seconds until there is more."""

    name: str
    quota: int
    remaining: int
    seconds: int | None  # until some of it is given back; None: when a request ends


class Limits:
    """Makes each request's `Allowance` from the limits of its key and of all callers, machine-wide."""

    def __init__(self, folder: Path, everybody: KeyLimits = UNLIMITED) -> None:
        self._folder = folder
        self._everybody = [Party(EVERYBODY, everybody)] if is_counted(everybody) else []
        self._counters: Counters | None = None
        self._leases: Leases | None = None

    def share(self, leases: Leases) -> None:
        """Share the limits per minute with all machines that lease from the same store."""
        self._leases = leases

    @property
    def counters(self) -> Counters:
        """The counters, opened on first use: most servers limit nobody."""
        if self._counters is None:
            self._counters = Counters(self._folder)
        return self._counters

    def open(self) -> None:
        """Open the counters if their folder exists, which clears the counts of processes that have died."""
        if self._folder.exists():
            _ = self.counters

    def close(self) -> None:
        """Close the counters."""
        if self._counters:
            self._counters.close()

    def allowance_of(self, key: ApiKey | None) -> "Allowance":
        """The allowance of a request with this key; `UNCOUNTED` if no limit applies to it."""
        parties = self._everybody
        if key and key.number is not None and is_counted(key.limits):
            parties = [Party(key.number, key.limits), *parties]
        if not parties:
            return UNCOUNTED
        try:
            if self._leases is None:
                return Counted(self.counters, parties)
            shared = SharedLimits(self.counters, self._leases, self._folder)
            return Counted(self.counters, parties, shared)
        except OSError as error:
            raise StorageFull(f"Requests cannot be counted in {self._folder}: {error.strerror}.") from error


def is_counted(limits: KeyLimits) -> bool:
    """Whether one of the limits is counted here; enrolled faces are counted in the store."""
    return any((limits.requests_per_minute, limits.photos_per_minute, limits.concurrent))


class Allowance:
    """What a request may still do: without limits, everything."""

    def enter(self) -> Self:
        """Count the request, until `leave`; raises RateLimited if that is one too many."""
        return self

    def check_photos(self) -> None:
        """Raise RateLimited if not even one photo may be sent: better before its upload than after."""

    def take_photos(self, photos: int) -> None:
        """Count photos; raises RateLimited, and counts none, if they are too many."""

    def try_reserve(self, what: str, needed: int) -> bool:  # noqa: ARG002
        """Reserve requests or photos from this machine's lease; False if only `reserve` may do it."""
        return True

    def reserve(self, what: str, needed: int) -> None:
        """Reserve requests or photos, asking the store; raises RateLimited if all machines used them up."""

    def standings(self) -> list[Standing]:
        """How far the caller is from each limit."""
        return []

    def leave(self) -> None:
        """The request is over."""


UNCOUNTED = Allowance()


class Counted(Allowance):
    """The allowance of a request whose caller has limits."""

    def __init__(
        self, counters: Counters, parties: Sequence[Party], shared: SharedLimits | None = None
    ) -> None:
        self._counters = counters
        self._parties = parties
        self._shared = shared

    def try_reserve(self, what: str, needed: int) -> bool:
        """Reserve requests or photos from this machine's lease; False if only `reserve` may do it."""
        limited = self._limited(what, needed)
        return len(limited) < 2 and all(
            shared.try_take(party.number, what, needed) for shared, party, _ in limited
        )

    def reserve(self, what: str, needed: int) -> None:
        """Reserve requests or photos, asking the store; raises RateLimited if all machines used them up."""
        for shared, party, limit in self._limited(what, needed):
            if wait := shared.take(party.number, what, limit, needed):
                detail = party.says(f"send {limit} {what} a minute")
                raise RateLimited(detail, limit=limit, retry_after_seconds=wait)

    def _limited(self, what: str, needed: int) -> list[tuple[SharedLimits, Party, int]]:
        """The shared limits, each party that limits `what` per minute, and its limit; none unless shared.

        Left out if `needed` alone exceeds the limit: `enter` or `take_photos` then refuses it.
        """
        if self._shared is None or not needed:
            return []
        limits = ((party, getattr(party.limits, f"{what}_per_minute")) for party in self._parties)
        return [(self._shared, party, limit) for party, limit in limits if limit and needed <= limit]

    def enter(self) -> Self:
        """Count the request, until `leave`; raises RateLimited if that is one too many."""
        with self._counters.locked():
            places = [self._counters.place(party.number) for party in self._parties]
            for party, place in zip(self._parties, places, strict=True):
                refuse_beyond(party, place, "requests", party.limits.requests_per_minute, 1)
                refuse_crowd(party, place)
            for place in places:
                count(place, "requests", 1)
                place["at_once"][self._counters.process] += 1
        return self

    def check_photos(self) -> None:
        """Raise RateLimited if not even one photo may be sent."""
        self._take(0, needed=1)

    def take_photos(self, photos: int) -> None:
        """Count photos; raises RateLimited, and counts none, if they are too many."""
        if photos:
            self._take(photos, needed=photos)

    def _take(self, photos: int, *, needed: int) -> None:
        with self._counters.locked():
            places = [self._counters.place(party.number) for party in self._parties]
            for party, place in zip(self._parties, places, strict=True):
                refuse_beyond(party, place, "photos", party.limits.photos_per_minute, needed)
            for place in places:
                count(place, "photos", photos)

    def standings(self) -> list[Standing]:
        """How far the caller is from each limit."""
        with self._counters.locked():
            return [
                standing
                for party in self._parties
                for standing in describe(party, self._counters.place(party.number))
            ]

    def leave(self) -> None:
        """Take the request off the concurrent requests of its parties."""
        with self._counters.locked():
            for party in self._parties:
                self._counters.place(party.number)["at_once"][self._counters.process] -= 1


def count(place: Place, what: str, more: int) -> None:
    """Add `more` to the newest bucket of requests or photos (`what`) of a place."""
    counts = place[what]
    counts[int(place["second"]) % len(counts)] += more


def refuse_beyond(party: Party, place: Place, what: str, limit: int | None, needed: int) -> None:
    """Raise if `needed` more requests or photos are beyond the limit of a minute."""
    if limit is None:
        return
    sent = int(place[what].sum())
    if sent + needed <= limit:
        return
    detail = party.says(f"send {limit} {what} a minute")
    if needed > limit:
        raise RateLimited(f"{detail} This request alone has {needed}.", limit=limit)
    wait = seconds_until(place[what], int(place["second"]), sent + needed - limit)
    raise RateLimited(detail, limit=limit, retry_after_seconds=wait)


def refuse_crowd(party: Party, place: Place) -> None:
    """Raise if the party already has as many requests at once as its limit `concurrent` allows."""
    limit = party.limits.concurrent
    if limit is not None and int(place["at_once"].sum()) >= limit:
        raise RateLimited(party.says(f"have {limit} requests at once"), limit=limit, retry_after_seconds=1)


def describe(party: Party, place: Place) -> list[Standing]:
    """The standing of a party at each of its limits."""
    found = []
    minutes = {"requests": party.limits.requests_per_minute, "photos": party.limits.photos_per_minute}
    for what, limit in minutes.items():
        if limit is not None:
            sent = int(place[what].sum())
            wait = seconds_until(place[what], int(place["second"]), 1) if sent else WINDOW_SECONDS
            found.append(Standing(f"{party.prefix}{what}", limit, max(0, limit - sent), wait))
    if party.limits.concurrent is not None:
        left = max(0, party.limits.concurrent - int(place["at_once"].sum()))
        found.append(Standing(f"{party.prefix}concurrent", party.limits.concurrent, left, None))
    return found
