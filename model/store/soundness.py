"""Questions about the soundness of the store, each function inside a transaction of its caller."""

from sqlalchemy import Connection, func, select, update

from sameface.model.store.records import Collection
from sameface.model.store.tables import changes, collections, faces, people

MOST_FAULTS = 20  # that SQLite names


def find_damage(connection: Connection) -> list[str]:
    """What SQLite finds wrong with the file itself."""
    rows = connection.exec_driver_sql(f"PRAGMA integrity_check({MOST_FAULTS})").scalars()
    return [fault for fault in rows if fault != "ok"]


def count_orphans(connection: Connection) -> int:
    """Rows that belong to something that is not there."""
    return len(connection.exec_driver_sql("PRAGMA foreign_key_check").all())


def count_rows(connection: Connection, collection: Collection) -> tuple[int, int]:
    """People and faces of a collection, counted one by one."""
    counts = [
        connection.execute(
            select(func.count()).select_from(table).where(table.c.collection == collection.key)
        ).scalar_one()
        for table in (people, faces)
    ]
    return counts[0], counts[1]


def recount(connection: Connection, collection: Collection) -> None:
    """Let a collection's counters say what there is."""
    everybody, every_face = count_rows(connection, collection)
    connection.execute(
        update(collections)
        .where(collections.c.key == collection.key)
        .values(people=everybody, faces=every_face)
    )


def has_every_change(connection: Connection, collection: Collection) -> bool:
    """Whether the change sequence is 1, 2, 3 up to the revision."""
    sequence = changes.c.sequence
    row = connection.execute(
        select(func.count(), func.min(sequence), func.max(sequence)).where(
            changes.c.collection == collection.key
        )
    ).one()
    last = collection.revision
    return tuple(row) == ((last, 1, last) if last else (0, None, None))


def count_foreign(connection: Connection, collection: Collection) -> int:
    """Faces that another recogniser made."""
    foreign = (faces.c.collection == collection.key) & (faces.c.identity != collection.identity)
    return connection.execute(select(func.count()).select_from(faces).where(foreign)).scalar_one()


def find_misfits(connection: Connection, collection: Collection) -> list[int]:
    """The keys of faces whose embedding has another length than it must."""
    misfit = (faces.c.collection == collection.key) & (
        func.length(faces.c.embedding) != 4 * collection.dimension
    )
    return list(connection.execute(select(faces.c.key).where(misfit)).scalars())
