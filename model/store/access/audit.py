"""The audit in the store: what was changed and decided, in chains of hashes, one per writing connection.

Each entry's hash covers its fields and the hash of the entry before it, so that none can be altered, removed
or moved without its chain breaking. Writers never wait for each other's chains.
"""

import hashlib
import json
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeAlias

from sqlalchemy import Connection, Select, bindparam, select

from sameface.model.actor import Actor, current_actor
from sameface.model.errors import EntryNotFound
from sameface.model.store.databases.database import Database, database_of
from sameface.model.store.databases.tables import audit, chains
from sameface.model.store.records import Collection, write_time

# The values of an entry by column, but for its place in its chain.
Columns: TypeAlias = dict[str, Any]

# A chain's id, and the number and hash of its last entry.
Head: TypeAlias = tuple[str, int, str]

FIRST = ""  # the hash before the first entry of a chain
DECISIONS = ("verify", "identify")
COMPACT = json.JSONEncoder(sort_keys=True, separators=(",", ":"), check_circular=False)

# Built once: every change and every block of decisions runs them.
HEAD_OF = select(chains).where(chains.c.chain == bindparam("of")).with_for_update()


def take_time() -> float:
    """The Unix time now, of as many digits as `write_time` shows."""
    return round(time.time(), 6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A change or a decision, and who asked for it; never an image, an embedding or a name."""

    action: str
    outcome: str = "done"
    collection: str | None = None
    revision: int | None = None  # of the collection: after a change, or as it was searched
    person_id: str | None = None
    model: str | None = None
    similarity: float | None = None
    threshold: float | None = None
    started_at: float | None = None  # when the work on a decision began
    reviewed: str | None = None  # the id of the entry that a review is about
    details: dict[str, Any] = field(default_factory=dict)
    time: float = field(default_factory=take_time)
    actor: Actor = field(default_factory=current_actor)

    def __post_init__(self) -> None:
        for name in ("similarity", "threshold"):  # 1 is read back as 1.0, which has another hash
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, float(value))

    @classmethod
    def about(cls, collection: Collection, action: str, **values: Any) -> "Entry":
        """An entry about a collection and its model, at the revision that `collection` was read at."""
        known: dict[str, Any] = {"collection": collection.name, "model": collection.bundle}
        return cls(action=action, **(known | {"revision": collection.revision} | values))

    def to_columns(self) -> Columns:
        """The entry's values by column; callers with many similar entries copy one result and change it."""
        actor = self.actor
        columns = dict(zip(OWN_COLUMNS, OWN_VALUES(self), strict=True))
        columns |= {"caller": actor.caller, "request_id": actor.request_id, "route": actor.route}
        return columns


OWN_COLUMNS = [each.name for each in fields(Entry) if each.name != "actor"]
OWN_VALUES = attrgetter(*OWN_COLUMNS)


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """An entry with its place in the audit."""

    key: int
    chain: str
    number: int
    entry: Entry
    hash: str

    @property
    def entry_id(self) -> str:
        """The id that requests name it by."""
        return f"{self.chain}.{self.number}"

    def describe(self) -> dict[str, Any]:
        """The entry as GET /v1/audit answers it and `sameface audit export` writes it."""
        return describe_columns(self.entry_id, self.entry.to_columns()) | {"hash": self.hash}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which entries to read; None is any."""

    since: float | None = None
    until: float | None = None
    caller: str | None = None
    collection: str | None = None
    person_id: str | None = None
    request_id: str | None = None

    def narrow(self, query: Select[Any]) -> Select[Any]:
        """`query`, restricted to the wanted entries."""
        for name in ("caller", "collection", "person_id", "request_id"):
            if (value := getattr(self, name)) is not None:
                query = query.where(audit.c[name] == value)
        if self.since is not None:
            query = query.where(audit.c.time >= self.since)
        return query if self.until is None else query.where(audit.c.time < self.until)


class Audit:
    """The entries of all chains."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, entries: Sequence[Columns]) -> None:
        """Append entries in a transaction of their own."""
        with self._database.writing() as connection:
            record_entries(connection, entries)

    def page(self, wanted: Wanted, limit: int, before: int | None = None) -> list[StoredEntry]:
        """Up to `limit` entries, newest first, from the first whose key is smaller than `before`."""
        query = wanted.narrow(select(audit)).order_by(audit.c.key.desc()).limit(limit)
        with self._database.reading() as connection:
            rows = connection.execute(query if before is None else query.where(audit.c.key < before))
            return [to_entry(row) for row in rows]

    def get(self, entry_id: str) -> StoredEntry:
        """The entry of this id."""
        with self._database.reading() as connection:
            return find_entry(connection, entry_id)

    def reviews_of(self, entry_ids: Sequence[str]) -> dict[str, list[StoredEntry]]:
        """By entry id: the reviews of these entries, earliest first."""
        with self._database.reading() as connection:
            return find_reviews(connection, entry_ids)


# Inside the caller's transaction.


def record_entry(connection: Connection, entry: Entry) -> None:
    """Append an entry to the connection's chain: it is written with the caller's change, or neither is."""
    record_entries(connection, [entry.to_columns()])


def record_entries(connection: Connection, entries: Sequence[Columns]) -> None:
    """Append entries to the chain of the connection, in their order."""
    if entries:
        rows = chain_entries(find_head(connection), entries)
        database_of(connection).append(connection, {audit: rows, chains: [end_with(rows[-1])]})


def chain_entries(head: Head, entries: Sequence[Columns]) -> list[dict[str, Any]]:
    """The rows of entries that come after the `head` of a chain, in their order."""
    chain, number, digest = head
    rows = []
    for columns in entries:
        number += 1
        digest = hash_entry(digest, describe_columns(f"{chain}.{number}", columns))
        rows.append(columns | {"chain": chain, "number": number, "hash": digest})
    return rows


def end_with(last: dict[str, Any]) -> dict[str, Any]:
    """The row of `chains` for a chain whose last entry is the row `last`; `sealed` counts for a new chain."""
    return {"chain": last["chain"], "number": last["number"], "hash": last["hash"], "sealed": 0}


def find_head(connection: Connection) -> Head:
    """The connection's chain, and the number and hash of its last entry; a new chain if it has none.

    A chain belongs to one connection of one process, which writes one transaction at a time: so it needs no
    lock, and a transaction that is rolled back leaves no gap.
    """
    chain = connection.info.get("chain", "")
    row = connection.execute(HEAD_OF, {"of": chain}).one_or_none()
    if row:
        return chain, row.number, row.hash
    connection.info["chain"] = secrets.token_hex(8)
    return connection.info["chain"], 0, FIRST


def describe_columns(entry_id: str, columns: Columns) -> dict[str, Any]:
    """An entry in the names and types of the HTTP API: all that its hash covers."""
    started = columns["started_at"]
    times = {
        "time": write_time(columns["time"]),
        "started_at": None if started is None else write_time(started),
    }
    return {"entry_id": entry_id} | columns | times


def hash_entry(previous: str, described: dict[str, Any]) -> str:
    """The SHA-256, in hexadecimal, of the hash `previous` and an entry: a list of both as compact JSON."""
    return hashlib.sha256(write_compactly([previous, described])).hexdigest()


def write_compactly(value: Any) -> bytes:
    """A value as JSON without spaces and with sorted keys: equal values are equal bytes."""
    return COMPACT.encode(value).encode()


def find_entry(connection: Connection, entry_id: str) -> StoredEntry:
    """The entry of this id."""
    chain, _, number = entry_id.rpartition(".")
    if number.isascii() and number.isdecimal() and len(number) < 16:
        same = (audit.c.chain == chain) & (audit.c.number == int(number))
        if row := connection.execute(select(audit).where(same)).one_or_none():
            return to_entry(row)
    raise EntryNotFound(f"There is no entry {entry_id!r} in the audit: it may be older than what is kept.")


def find_reviews(connection: Connection, entry_ids: Sequence[str]) -> dict[str, list[StoredEntry]]:
    """By entry id: the reviews of these entries, earliest first."""
    found: dict[str, list[StoredEntry]] = {entry_id: [] for entry_id in entry_ids}
    wanted = select(audit).where(audit.c.reviewed.in_(entry_ids)).order_by(audit.c.key)
    for row in connection.execute(wanted):
        found[row.reviewed].append(to_entry(row))
    return found


def to_entry(row: Any) -> StoredEntry:
    """A row of the audit as a value."""
    columns = dict(row._mapping)
    key, chain, number, digest = (columns.pop(name) for name in ("key", "chain", "number", "hash"))
    actor = Actor(columns.pop("caller"), columns.pop("request_id"), columns.pop("route"))
    return StoredEntry(key, chain, number, Entry(actor=actor, **columns), digest)
