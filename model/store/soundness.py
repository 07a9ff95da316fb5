"""Whether a collection's rows fit together; each function runs inside its caller's transaction."""

from sqlalchemy import Connection, func, select, update

from sameface.model.store.collections import refuse_gone
from sameface.model.store.databases.tables import changes, collections, faces, people
from sameface.model.store.records import Collection


def count_rows(connection: Connection, collection: Collection) -> tuple[int, int]:
    """The numbers of people and faces in a collection, counted row by row."""
    counts = [
        connection.execute(
            select(func.count()).select_from(table).where(table.c.collection == collection.key)
        ).scalar_one()
        for table in (people, faces)
    ]
    return counts[0], counts[1]


def count_everything(connection: Connection) -> tuple[int, int, int]:
    """The numbers of collections, people and faces, by the collections' counters, without drafts."""
    row = connection.execute(
        select(
            func.count(),
            func.coalesce(func.sum(collections.c.people), 0),
            func.coalesce(func.sum(collections.c.faces), 0),
        ).where(collections.c.draft.is_(None))
    ).one()
    return row[0], row[1], row[2]


def recount(connection: Connection, collection: Collection) -> None:
    """Set a collection's counters to the numbers of its rows."""
    refuse_gone(connection, collection)
    everybody, every_face = count_rows(connection, collection)
    connection.execute(
        update(collections)
        .where(collections.c.key == collection.key)
        .values(people=everybody, faces=every_face)
    )


def has_every_change(connection: Connection, collection: Collection) -> bool:
    """Whether the changes are numbered from the first that is kept to the revision, without a gap."""
    sequence = changes.c.sequence
    row = connection.execute(
        select(func.count(), func.min(sequence), func.max(sequence)).where(
            changes.c.collection == collection.key
        )
    ).one()
    first, last = collection.compacted + 1, collection.revision
    return tuple(row) == ((last - first + 1, first, last) if last >= first else (0, None, None))


def count_foreign(connection: Connection, collection: Collection) -> int:
    """The number of faces whose embedding another recogniser made."""
    foreign = (faces.c.collection == collection.key) & (faces.c.identity != collection.identity)
    return connection.execute(select(func.count()).select_from(faces).where(foreign)).scalar_one()


def find_misfits(connection: Connection, collection: Collection) -> list[int]:
    """The keys of faces whose embedding has the wrong number of bytes."""
    misfit = (faces.c.collection == collection.key) & (
        func.length(faces.c.embedding) != 4 * collection.dimension
    )
    return list(connection.execute(select(faces.c.key).where(misfit)).scalars())
