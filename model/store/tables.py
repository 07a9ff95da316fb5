"""The tables of the gallery, their version, and the steps from each version to the next."""

import secrets
from collections.abc import Callable

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Connection,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    UniqueConstraint,
    inspect,
    select,
)

from sameface.model.errors import StoreRefused

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
    Column(
        "people", Integer, nullable=False
    ),  # counted as they come and go: a count of rows would read them all
    Column("faces", Integer, nullable=False),
    Column("created_at", Float, nullable=False),
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

answers = Table(
    "answers",
    metadata,
    Column("collection", ForeignKey("collections.key", ondelete="CASCADE"), primary_key=True),
    Column("idempotency_key", String, primary_key=True),
    Column("request", String, nullable=False),  # the sha256 of what was asked
    Column("answer", JSON, nullable=False),
    Column("created_at", Float, nullable=False),
    Index("answers_by_age", "created_at"),
)


def name_the_store(connection: Connection) -> None:
    """Version 2: a name by which snapshots know whose they are, and retries that expire without a search."""
    connection.execute(about.insert().values(key="store", value=secrets.token_hex(16)))
    for index in answers.indexes:
        index.create(connection, checkfirst=True)


# The step at index n takes a database from version n + 1 to n + 2.
MIGRATIONS: list[Callable[[Connection], None]] = [name_the_store]
VERSION = 1 + len(MIGRATIONS)


def migrate(connection: Connection) -> str:
    """Bring a database, new or old, to this version, and say its name; one from the future is refused."""
    if not inspect(connection).has_table("about"):
        metadata.create_all(connection)
        name_the_store(connection)
        connection.execute(about.insert().values(key="version", value=str(VERSION)))
    found = int(read_about(connection, "version"))
    if found > VERSION:
        raise StoreRefused(
            f"The gallery is of version {found}, this sameface knows {VERSION}: install a newer one."
        )
    for step in MIGRATIONS[found - 1 :]:
        step(connection)
    connection.execute(about.update().where(about.c.key == "version").values(value=str(VERSION)))
    return read_about(connection, "store")


def read_about(connection: Connection, key: str) -> str:
    """What the database says of itself."""
    return str(connection.execute(select(about.c.value).where(about.c.key == key)).scalar_one())
