"""The tables of the store; migrations.py brings older databases to them."""

from sqlalchemy import (
    JSON,
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

metadata = MetaData()

about = Table(
    "about", metadata, Column("key", String, primary_key=True), Column("value", String, nullable=False)
)

collections = Table(
    "collections",
    metadata,
    Column("key", Integer, primary_key=True),
    Column("name", String, nullable=False, unique=True),
    Column("store_crops", Boolean, nullable=False),
    Column("calibration", String),
    Column("bundle", String, nullable=False),
    Column("identity", String, nullable=False),  # of the bundle: embeddings of two models never mix
    Column("dimension", Integer, nullable=False),
    Column("revision", Integer, nullable=False),  # the last number of its change sequence
    Column("people", Integer, nullable=False),  # a counter: to count the rows would read them all
    Column("faces", Integer, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("draft_of", String),  # the name that a draft is to take, or that a replaced collection had
    Column("draft", String),  # importing, reembedding and the new identity, or replaced; null: not a draft
    sqlite_autoincrement=True,  # a key is never used again, so no cache can take one collection for another
)

people = Table(
    "people",
    metadata,
    Column("key", Integer, primary_key=True),
    Column("collection", ForeignKey("collections.key", ondelete="CASCADE"), nullable=False),
    Column("person_id", String, nullable=False),
    Column("name", String),
    Column("metadata", JSON, nullable=False),
    Column("created_at", Float, nullable=False),
    UniqueConstraint("collection", "person_id"),
    sqlite_autoincrement=True,
)

faces = Table(
    "faces",
    metadata,
    Column("key", Integer, primary_key=True),
    Column("collection", ForeignKey("collections.key", ondelete="CASCADE"), nullable=False),
    Column("person", ForeignKey("people.key", ondelete="CASCADE"), nullable=False),
    Column("face_id", String, nullable=False),
    Column("embedding", LargeBinary, nullable=False),  # little-endian float32
    Column("quality", Float),
    Column("bundle", String, nullable=False),
    Column("identity", String, nullable=False),
    Column("photo", String),  # the sha256 of the photo it came from, to notice the same one again
    Column("crop", LargeBinary),  # PNG, only where the collection's owner asked for it
    Column("created_at", Float, nullable=False),
    UniqueConstraint("collection", "face_id"),
    Index("faces_of_person", "person"),
    Index("faces_of_photo", "collection", "photo"),
    sqlite_autoincrement=True,
)

changes = Table(
    "changes",
    metadata,
    Column("collection", ForeignKey("collections.key", ondelete="CASCADE"), primary_key=True),
    Column("sequence", Integer, primary_key=True),
    Column("kind", String, nullable=False),  # enrol, update, delete
    Column("person", Integer, nullable=False),
    Column("face", Integer),  # the face that came or went
    sqlite_with_rowid=False,
)

remembered_responses = Table(
    "answers",
    metadata,
    Column("collection", ForeignKey("collections.key", ondelete="CASCADE"), primary_key=True),
    Column("idempotency_key", String, primary_key=True),
    Column("request", String, nullable=False),  # the SHA-256 of the request
    Column("answer", JSON, nullable=False),
    Column("created_at", Float, nullable=False),
    Index("answers_by_age", "created_at"),
)
