"""API keys in the store: make, read, rotate, revoke. A revoked key stays, so that it is known who called."""

import time
from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, bindparam, func, insert, select, update

from sameface.model.data_folder import GalleryPlace
from sameface.model.errors import AlreadyExists, KeyNotFound
from sameface.model.store.access.api_key import ApiKey, KeyLimits
from sameface.model.store.access.audit import Entry, record_entry
from sameface.model.store.databases.database import Database, Now
from sameface.model.store.databases.opening import peeking
from sameface.model.store.databases.tables import about, keys

REVISION = "keys"  # the row of `about` that counts the changes of keys
HOUR = 3600

# Built once: every worker asks this several times a second.
READ_REVISION = select(about.c.value).where(about.c.key == bindparam("key"))


class Keys:
    """All keys that were ever made here."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def revision(self) -> int:
        """The number of changes of keys so far; it is 0 until the first key is made, and never again."""
        with self._database.statement() as connection:
            return int(connection.execute(READ_REVISION, {"key": REVISION}).scalar_one_or_none() or 0)

    def add(self, key: ApiKey) -> ApiKey:
        """Keep a new key; returns it with its number. Two keys cannot have one secret."""
        with self._database.writing(alone=True) as connection:
            if connection.execute(select(keys.c.key_id).where(keys.c.sha256 == key.sha256)).first():
                raise AlreadyExists("There is a key with this secret already.")
            record_change(connection, "create_key", key.key_id)
            connection.execute(insert(keys).values(to_row(key)))
            return read_key(connection, key.key_id)

    def get(self, key_id: str) -> ApiKey:
        """The key with this id."""
        with self._database.reading() as connection:
            return read_key(connection, key_id)

    def page(self, limit: int | None = None, after: str = "") -> list[ApiKey]:
        """Up to `limit` keys by id, from the first whose id is greater than `after`."""
        with self._database.reading() as connection:
            return read_page(connection, limit, after)

    def rotate(self, key_id: str, sha256: str, grace_seconds: float, sealed: str | None = None) -> ApiKey:
        """Give a key another secret; the one before works for `grace_seconds` more, if it still did.

        That is by the database's clock; without any, it has ended on every machine, whatever its clock says.
        """
        with self._database.writing(alone=True) as connection:
            former = read_key(connection, key_id)
            if former.revoked_at is not None:
                raise KeyNotFound(f"The key {key_id!r} is revoked: make a new one.")
            ends = Now() + grace_seconds if grace_seconds else None
            values = {"sha256": sha256, "sealed": sealed, "former_until": ends}
            values |= {"former_sha256": former.sha256, "former_sealed": former.sealed}
            return change_key(connection, "rotate_key", key_id, values)

    def revoke(self, key_id: str) -> ApiKey:
        """End a key for good; one that is revoked already stays as it is."""
        with self._database.writing(alone=True) as connection:
            key = read_key(connection, key_id)
            if key.revoked_at is not None:
                return key
            return change_key(connection, "revoke_key", key_id, {"revoked_at": time.time()})

    def note_used(self, key_ids: Collection[str], now: float) -> None:
        """Remember that keys were used in the hour of `now`, unless a later hour is known."""
        hour = now - now % HOUR
        earlier = func.coalesce(keys.c.last_used_at, 0.0) < hour
        with self._database.writing(alone=True) as connection:
            connection.execute(
                update(keys).where(keys.c.key_id.in_(key_ids) & earlier).values(last_used_at=hour)
            )


# Inside the caller's transaction.


def record_change(connection: Connection, action: str, key_id: str) -> None:
    """Increase the revision of the keys, by which all processes notice the change, and audit it."""
    record_entry(connection, Entry(action=action, details={"key_id": key_id}))
    found = connection.execute(READ_REVISION, {"key": REVISION}).scalar_one_or_none()
    if found is None:
        connection.execute(insert(about).values(key=REVISION, value="1"))
    else:
        connection.execute(update(about).where(about.c.key == REVISION).values(value=str(int(found) + 1)))


def change_key(connection: Connection, action: str, key_id: str, values: dict[str, Any]) -> ApiKey:
    """Set columns of a key, which the audit calls `action`; returns the changed key."""
    record_change(connection, action, key_id)
    connection.execute(update(keys).where(keys.c.key_id == key_id).values(values))
    return read_key(connection, key_id)  # RETURNING would have whole seconds as integers


def read_key(connection: Connection, key_id: str) -> ApiKey:
    """The key with this id."""
    row = connection.execute(select(keys).where(keys.c.key_id == key_id)).one_or_none()
    if row is None:
        raise KeyNotFound(f"There is no key {key_id!r}.")
    return to_key(row)


def read_page(connection: Connection, limit: int | None = None, after: str = "") -> list[ApiKey]:
    """Up to `limit` keys by id, from the first whose id is greater than `after`."""
    wanted = select(keys).where(keys.c.key_id > after).order_by(keys.c.key_id).limit(limit)
    return [to_key(row) for row in connection.execute(wanted)]


def peek_keys(place: GalleryPlace) -> list[ApiKey]:
    """All keys of a database that may not exist or be older."""
    with peeking(place, keys.name) as connection:
        return read_page(connection) if connection else []


def to_row(key: ApiKey) -> dict[str, Any]:
    """The columns of a key that is to be added."""
    same = ("key_id", "name", "sha256", "sealed", "service", "created_at", "expires_at")
    values = {name: getattr(key, name) for name in same}
    limits = {name: limit for name, limit in asdict(key.limits).items() if limit is not None}
    return values | {"scopes": sorted(key.scopes), "collections": list_or_none(key), "limits": limits}


def list_or_none(key: ApiKey) -> Sequence[str] | None:
    """The key's collections as JSON has them."""
    return None if key.collections is None else list(key.collections)


def to_key(row: Any) -> ApiKey:
    """A row of `keys` as a value."""
    columns = dict(row._mapping)
    places = columns["collections"]
    return ApiKey(
        **columns
        | {
            "scopes": frozenset(columns["scopes"]),
            "collections": None if places is None else tuple(places),
            "limits": KeyLimits(**columns["limits"]),
        }
    )
