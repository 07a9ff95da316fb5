"""The version of the tables, and the steps from each version to the next."""

import secrets
from collections.abc import Callable

from sqlalchemy import Connection, inspect, select

from sameface.model.errors import StoreRefused
from sameface.model.store.databases.database import Now, damaged
from sameface.model.store.databases.tables import (
    about,
    audit,
    calibrations,
    chains,
    chosen_calibrations,
    collections,
    feeds,
    followers,
    keys,
    leases,
    metadata,
    remembered_responses,
    seals,
)

# How version 2 marked a draft: by the end of its name.
OLD_DRAFTS = {" (importing)": "importing", " (replaced)": "replaced"}
OLD_REEMBEDDING = " (reembedding "

COMPACTS_FROM = "compacts_from"  # the row of `about` with the time before which no change is compacted
OVERLAP_SECONDS = 24 * 3600


def name_the_store(connection: Connection) -> None:
    """Version 2: a random id by which snapshots know their store, and an index to expire responses by age."""
    connection.execute(about.insert().values(key="store", value=secrets.token_hex(16)))
    for index in remembered_responses.indexes:
        index.create(connection, checkfirst=True)


def mark_drafts(connection: Connection) -> None:
    """Version 3: a draft is marked by the columns `draft_of` and `draft`, no longer by its name."""
    for column in ("draft_of", "draft"):
        connection.exec_driver_sql(f"ALTER TABLE collections ADD COLUMN {column} VARCHAR")
    for key, name in connection.execute(select(collections.c.key, collections.c.name)).all():
        if found := read_old_draft(name):
            connection.execute(
                collections.update().where(collections.c.key == key).values(draft_of=found[0], draft=found[1])
            )


def read_old_draft(name: str) -> tuple[str, str] | None:
    """`draft_of` and `draft` from the name of a draft of version 2; None for other collections."""
    for ending, draft in OLD_DRAFTS.items():
        if name.endswith(ending):
            return name.removesuffix(ending), draft
    of, found, identity = name.partition(OLD_REEMBEDDING)
    return (of, f"reembedding {identity.removesuffix(')')}") if found else None


def keep_calibrations(connection: Connection) -> None:
    """Version 4: tables for the calibrations that users make, and for which of them decides."""
    for table in (calibrations, chosen_calibrations):
        table.create(connection, checkfirst=True)


def keep_keys(connection: Connection) -> None:
    """Version 5: a table for API keys."""
    keys.create(connection, checkfirst=True)


def keep_an_audit(connection: Connection) -> None:
    """Version 6: the audit with its chains and seals, and how many people must confirm a match."""
    for table in (audit, chains, seals):
        table.create(connection, checkfirst=True)
    connection.exec_driver_sql("ALTER TABLE collections ADD COLUMN reviewers INTEGER DEFAULT 0 NOT NULL")


def bind_keys(connection: Connection) -> None:
    """Version 7: a key may be for a service of another server's family."""
    if all(column["name"] != "service" for column in inspect(connection).get_columns(keys.name)):
        connection.exec_driver_sql("ALTER TABLE keys ADD COLUMN service VARCHAR")


def seal_secrets(connection: Connection) -> None:
    """Version 8: a key may keep its secret, encrypted, and a face what its client wants to read again."""
    added = {"keys": {"sealed": "VARCHAR", "former_sealed": "VARCHAR"}, "faces": {"details": "JSON"}}
    for table, columns in added.items():
        known = {column["name"] for column in inspect(connection).get_columns(table)}
        for column in columns.keys() - known:
            connection.exec_driver_sql(f"ALTER TABLE {table} ADD COLUMN {column} {columns[column]}")


def follow_followers(connection: Connection) -> None:
    """Version 9: who follows the changes, up to where they are compacted, and what machines lease of limits.

    Code of version 8 would miss changes that were compacted: it can no longer start, and processes that still
    run it have a day to be replaced.
    """
    for table in (followers, leases):
        table.create(connection, checkfirst=True)
    if all(column["name"] != "compacted" for column in inspect(connection).get_columns(collections.name)):
        key = "BIGINT" if connection.dialect.name == "postgresql" else "INTEGER"
        connection.exec_driver_sql(f"ALTER TABLE collections ADD COLUMN compacted {key} DEFAULT 0 NOT NULL")
    until = connection.execute(select(Now())).scalar_one() + OVERLAP_SECONDS
    connection.execute(about.insert().values(key=COMPACTS_FROM, value=str(until)))


def keep_feeds(connection: Connection) -> None:
    """Version 10: a table for how far Milvus was fed."""
    feeds.create(connection, checkfirst=True)


# The step at index n takes a database from version n + 1 to n + 2.
MIGRATIONS: list[Callable[[Connection], None]] = [
    name_the_store,
    mark_drafts,
    keep_calibrations,
    keep_keys,
    keep_an_audit,
    bind_keys,
    seal_secrets,
    follow_followers,
    keep_feeds,
]
VERSION = 1 + len(MIGRATIONS)

# The oldest version of this code that can go on serving a database of `VERSION`, so that machines are
# upgraded one by one. A step that only adds tables, or columns that are null or have a default, leaves it as
# it is. What older code reads is changed or removed in a later release, by a step that raises this.
OLDEST = 9


# Rows of `about` that keep everybody from opening a gallery, and what they are told.
MOVING, MOVED = "moving", "moved"
MARKS = {
    MOVING: "A gallery is being moved here, and not all of it is here: run `sameface gallery move` again.",
    MOVED: "The gallery was moved from here by `sameface gallery move`: open it where it is now.",
}


def note_the_oldest(connection: Connection) -> None:
    """Have the database say which older versions of the code can use it, too."""
    connection.execute(about.delete().where(about.c.key == "oldest"))
    connection.execute(about.insert().values(key="oldest", value=str(OLDEST)))


def migrate(connection: Connection) -> str:
    """Bring a database, new or old, to this version and return its id; a newer version is refused."""
    if not inspect(connection).has_table("about"):
        metadata.create_all(connection)
        name_the_store(connection)
        connection.execute(about.insert().values(key="version", value=str(VERSION)))
        note_the_oldest(connection)
    found = read_version(connection)
    if found > VERSION:
        refuse_newer(connection, found)
    for step in MIGRATIONS[found - 1 :]:
        step(connection)
    if found < VERSION:
        connection.execute(about.update().where(about.c.key == "version").values(value=str(VERSION)))
        note_the_oldest(connection)
    return read_about(connection, "store")


def refuse_newer(connection: Connection, found: int) -> None:
    """Raise if a database of the newer version `found` says that code as old as this must not use it."""
    oldest = read_about(connection, "oldest")
    if not oldest.isdecimal() or int(oldest) > VERSION:
        raise StoreRefused(
            f"The gallery is of version {found}, this sameface knows {VERSION}: install a newer one."
        )


def refuse_other_version(connection: Connection) -> None:
    """Raise if a database that can only be read is not of this version: it cannot be brought to it."""
    found = read_version(connection) if inspect(connection).has_table("about") else 0
    if found != VERSION:
        raise StoreRefused(
            f"The gallery may only be read here, and its version is {found} instead of {VERSION}: copy its "
            "folder to where it may be written, and open that."
        )


def refuse_moving(connection: Connection) -> None:
    """Raise if the database holds a gallery that has not wholly arrived, or that has gone elsewhere."""
    marks = connection.execute(select(about.c.key).where(about.c.key.in_(MARKS))).scalars().all()
    for mark in marks:
        raise StoreRefused(MARKS[mark])


def read_version(connection: Connection) -> int:
    """The version of a database."""
    found = read_about(connection, "version")
    if not found.isdecimal():
        raise damaged("its version is no number")
    return int(found)


def read_about(connection: Connection, key: str) -> str:
    """The value of `key` in the table of facts about the database itself."""
    found = connection.execute(select(about.c.value).where(about.c.key == key)).scalar_one_or_none()
    if found is None:
        raise damaged(f"its {key} is missing")
    return str(found)
