"""An API key as a value: what it may do, where, how much, and until when."""

from collections.abc import Iterable
from dataclasses import dataclass

ANYTHING = "*"  # at the end of a prefix: every collection whose name begins with what stands before it


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyLimits:
    """The limits of one key, or of all callers together; None: no limit."""

    requests_per_minute: int | None = None
    photos_per_minute: int | None = None
    concurrent: int | None = None  # requests at once
    faces: int | None = None  # enrolled in the collections that the key may touch


UNLIMITED = KeyLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """An API key of the store or the environment: the hash of its secret, and what it may do until when."""

    key_id: str
    name: str
    sha256: str  # of the secret
    sealed: str | None = None  # the secret, encrypted, if signatures are checked with it
    scopes: frozenset[str]
    collections: tuple[str, ...] | None = None  # names, or prefixes that end in `*`; None: all
    limits: KeyLimits = UNLIMITED
    service: str | None = None  # of another server's family, such as `compreface/detection`
    created_at: float | None = None  # None: of the environment
    expires_at: float | None = None
    last_used_at: float | None = None  # to the hour
    revoked_at: float | None = None
    former_sha256: str | None = None  # of the secret before the last rotation
    former_sealed: str | None = None
    former_until: float | None = None  # when that stops working
    number: int | None = None  # of the row; None: of the environment

    def may_touch(self, collection: str) -> bool:
        """Whether the key may see and use `collection`, if there is one of this name."""
        return self.collections is None or any(fits(collection, place) for place in self.collections)

    def covers(self, other: "ApiKey") -> bool:
        """Whether this key has all scopes of `other`, and may touch all its collections."""
        if not other.scopes <= self.scopes:
            return False
        if self.collections is None or other.collections is None:
            return self.collections is None
        return all(covers(self.collections, place) for place in other.collections)


def fits(collection: str, place: str) -> bool:
    """Whether a collection has the name `place`, or begins with the prefix in it."""
    return collection.startswith(place[:-1]) if place.endswith(ANYTHING) else collection == place


def covers(places: Iterable[str], place: str) -> bool:
    """Whether every collection that fits `place` fits one of `places`."""
    return any(each == place or (each.endswith(ANYTHING) and place.startswith(each[:-1])) for each in places)
