"""The tables of the store; migrations.py brings older databases to them."""

from collections.abc import Callable
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    UniqueConstraint,
)

from sameface.model.store.databases.database import damaged
from sameface.model.store.records import LAST_TIME

metadata = MetaData()

# 64 bits; SQLite counts up an INTEGER alone.
Key = BigInteger().with_variant(Integer(), "sqlite")


class Text(String):
    """Text that is checked when it is read: SQLite returns whatever a damaged file holds."""

    def result_processor(self, _: Any, __: Any) -> Callable[[Any], str | None]:
        """What SQLAlchemy calls with every value that is read."""
        return read_text


class Time(Float[float]):
    """Seconds since 1970, which are checked when they are read."""

    def result_processor(self, _: Any, __: Any) -> Callable[[Any], float]:
        """What SQLAlchemy calls with every value that is read."""
        return read_time


class MaybeTime(Float[float]):
    """Seconds since 1970, or null."""

    def result_processor(self, _: Any, __: Any) -> Callable[[Any], float | None]:
        """What SQLAlchemy calls with every value that is read."""
        return lambda value: None if value is None else read_time(value)


def read_text(value: Any) -> str | None:
    """The text of a column, or null."""
    if value is None or isinstance(value, str):
        return value
    raise damaged("a text is none")


def read_time(value: Any) -> float:
    """The seconds in a column."""
    if isinstance(value, float) and 0 <= value < LAST_TIME:
        return value
    raise damaged("a time is none")


about = Table(
    "about", metadata, Column("key", String, primary_key=True), Column("value", String, nullable=False)
)

collections = Table(
    "collections",
    metadata,
    Column("key", Key, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("store_crops", Boolean, nullable=False),
    Column("calibration", Text),
    Column("bundle", Text, nullable=False),
    Column("identity", Text, nullable=False),  # of the bundle: embeddings of two models never mix
    Column("dimension", Integer, nullable=False),
    Column("revision", Key, nullable=False),  # the last number of its change sequence
    Column("people", Integer, nullable=False),  # a counter: to count the rows would read them all
    Column("faces", Integer, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("draft_of", Text),  # the name that a draft is to take, or that a replaced collection had
    Column("draft", Text),  # importing, reembedding and the new identity, or replaced; null: not a draft
    Column("reviewers", Integer, nullable=False, server_default="0"),  # who must confirm a match
    Column("compacted", Key, nullable=False, server_default="0"),  # up to this number, changes are deleted
    sqlite_autoincrement=True,  # a key is never used again, so no cache can take one collection for another
)

people = Table(
    "people",
    metadata,
    Column("key", Key, primary_key=True),
    Column("collection", ForeignKey("collections.key", ondelete="CASCADE"), nullable=False),
    Column("person_id", Text, nullable=False),
    Column("name", Text),
    Column("metadata", JSON, nullable=False),
    Column("created_at", Time, nullable=False),
    UniqueConstraint("collection", "person_id"),
    sqlite_autoincrement=True,
)

faces = Table(
    "faces",
    metadata,
    Column("key", Key, primary_key=True),
    Column("collection", ForeignKey("collections.key", ondelete="CASCADE"), nullable=False),
    Column("person", ForeignKey("people.key", ondelete="CASCADE"), nullable=False),
    Column("face_id", Text, nullable=False),
    Column("embedding", LargeBinary, nullable=False),  # little-endian float32
    Column("quality", Float),
    Column("bundle", Text, nullable=False),
    Column("identity", Text, nullable=False),
    Column("photo", Text),  # the sha256 of the photo it came from, to notice the same one again
    Column("crop", LargeBinary),  # PNG, only where the collection's owner asked for it
    Column("details", JSON(none_as_null=True)),  # what its client wants to read again: see NewFace.details
    Column("created_at", Time, nullable=False),
    UniqueConstraint("collection", "face_id"),
    Index("faces_of_person", "person"),
    Index("faces_of_photo", "collection", "photo"),
    sqlite_autoincrement=True,
)

changes = Table(
    "changes",
    metadata,
    Column("collection", ForeignKey("collections.key", ondelete="CASCADE"), primary_key=True),
    Column("sequence", Key, primary_key=True),
    Column("kind", String, nullable=False),  # enrol, update, delete
    Column("person", Key, nullable=False),
    Column("face", Key),  # the face that came or went
    sqlite_with_rowid=False,
)

followers = Table(
    "followers",
    metadata,
    Column("collection", ForeignKey("collections.key", ondelete="CASCADE"), primary_key=True),
    Column("follower", Text, primary_key=True),  # a process with an index
    Column("sequence", Key, nullable=False),  # the last change that it will never need again
    Column("seen_at", Time, nullable=False),
)

remembered_responses = Table(
    "answers",
    metadata,
    Column("collection", ForeignKey("collections.key", ondelete="CASCADE"), primary_key=True),
    Column("idempotency_key", Text, primary_key=True),
    Column("request", Text, nullable=False),  # the SHA-256 of the request
    Column("answer", JSON, nullable=False),
    Column("created_at", Time, nullable=False),
    Index("answers_by_age", "created_at"),
)

calibrations = Table(
    "calibrations",
    metadata,
    Column("identity", Text, primary_key=True),  # of the bundle that it was measured with
    Column("name", Text, primary_key=True),  # without the bundle's name
    Column("content", JSON, nullable=False),  # as in a bundle's file of a calibration
    Column("created_at", Time, nullable=False),
)

chosen_calibrations = Table(
    "chosen_calibrations",
    metadata,
    Column("identity", Text, primary_key=True),
    Column("name", Text, nullable=False),  # of a calibration in the store, or in the bundle's folder
)

keys = Table(
    "keys",
    metadata,
    Column("number", Key, primary_key=True),
    Column("key_id", Text, nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("sha256", Text, nullable=False, unique=True),  # of the secret
    Column("sealed", Text),  # the secret itself, encrypted, where signatures are checked with it; else null
    Column("scopes", JSON, nullable=False),
    Column("collections", JSON(none_as_null=True)),  # names, or prefixes that end in `*`; null: all
    Column("limits", JSON, nullable=False),
    Column("service", Text),  # of another server's family, which the key is for; null: of our own routes
    Column("created_at", Time, nullable=False),
    Column("expires_at", MaybeTime),
    Column("last_used_at", MaybeTime),  # to the hour
    Column("revoked_at", MaybeTime),
    Column("former_sha256", Text),  # of the secret before the last rotation
    Column("former_sealed", Text),
    Column("former_until", MaybeTime),
    sqlite_autoincrement=True,  # a number is never used again: limits are counted by it
)

leases = Table(
    "leases",
    metadata,
    Column("key", Key, primary_key=True),
    Column("number", Key, nullable=False),  # of the API key; 0: all callers together
    Column("what", Text, nullable=False),  # requests or photos
    Column("amount", Integer, nullable=False),
    Column("taken_at", Time, nullable=False),
    Index("leases_of_key", "number", "what"),
    sqlite_autoincrement=True,
)

audit = Table(
    "audit",
    metadata,
    Column("key", Key, primary_key=True),  # in the order of writing
    Column("chain", Text, nullable=False),
    Column("number", Key, nullable=False),  # in its chain: 1, 2, 3, ...
    Column("time", Time, nullable=False),
    Column("started_at", Float),  # of a decision
    Column("action", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("caller", Text, nullable=False),
    Column("request_id", Text),
    Column("route", Text),
    Column("collection", Text),  # its name: the entry outlives the collection
    Column("revision", Key),
    Column("person_id", Text),
    Column("model", Text),
    Column("similarity", Float),
    Column("threshold", Float),
    Column("reviewed", Text),  # the id of the entry that a review is about
    Column("details", JSON, nullable=False),
    Column("hash", Text, nullable=False),  # of this entry and the hash of the one before it
    UniqueConstraint("chain", "number"),
    Index("audit_by_time", "time"),
    Index("audit_of_person", "person_id"),
    Index("audit_of_request", "request_id"),
    Index("audit_reviews", "reviewed"),
    sqlite_autoincrement=True,
)

chains = Table(
    "audit_chains",
    metadata,
    Column("chain", Text, primary_key=True),
    Column("number", Key, nullable=False),  # of its last entry
    Column("hash", Text, nullable=False),
    Column("sealed", Key, nullable=False),  # the number of its last entry that a seal covers
)

seals = Table(
    "seals",
    metadata,
    Column("number", Key, primary_key=True, autoincrement=False),
    Column("time", Time, nullable=False),
    Column("previous", Text, nullable=False),  # the signature of the seal before it
    Column("heads", JSON, nullable=False),  # by chain: the number and the hash of its last entry
    Column("is_cut", Boolean, nullable=False),  # whether all that it covers was cut
    Column("signature", Text, nullable=False),
)

feeds = Table(
    "feeds",
    metadata,
    Column("collection", Key, primary_key=True, autoincrement=False),  # its key, also after it was deleted
    Column("identity", Text, nullable=False),
    Column("sequence", Key, nullable=False),  # up to which Milvus surely has the collection's changes
    Column("mark", Key, nullable=False),  # the key of the entity in Milvus that says so; 0: nothing is there
)

# By table: the columns that a row replaces if its key is there already; other tables refuse such a row.
REPLACED = {chains: ("number", "hash")}

# By table: the column whose values the database counts up.
COUNTED = {
    table.name: table.autoincrement_column.name
    for table in metadata.sorted_tables
    if table.autoincrement_column is not None
}
