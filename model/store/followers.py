"""Records how far each follower of a change sequence is; changes that all of them have are deleted."""

from contextlib import suppress

from sqlalchemy import Connection, delete, func, insert, select, update

from sameface.model.errors import CollectionNotFound
from sameface.model.store.collections import refuse_gone
from sameface.model.store.databases.database import Database, Now
from sameface.model.store.databases.migrations import COMPACTS_FROM
from sameface.model.store.databases.tables import about, changes, collections, followers
from sameface.model.store.records import Collection

FLOOR_SECONDS = 24 * 3600  # whoever was away for longer reads all faces anew
FEWEST = 1_000  # changes that are worth a transaction
MOST = 10_000  # changes that one transaction deletes


class Followers:
    """The followers of all collections."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def note(self, follower: str, collection: Collection, sequence: int) -> None:
        """Note the last change of a collection that a follower will never need again."""
        mine = (followers.c.collection == collection.key) & (followers.c.follower == follower)
        values = {"sequence": sequence, "seen_at": Now()}
        with suppress(CollectionNotFound), self._database.writing() as connection:
            refuse_gone(connection, collection)
            if not connection.execute(update(followers).where(mine).values(values)).rowcount:
                row = {"collection": collection.key, "follower": follower, **values}
                connection.execute(insert(followers).values(row))

    def compact(self, collection: Collection) -> int:
        """Delete the changes that every follower of the last day has; returns their number.

        One transaction deletes a few thousand at most: call it until it returns 0.
        """
        with suppress(CollectionNotFound), self._database.writing() as connection:
            refuse_gone(connection, collection)
            delete_old(connection, collection)
            at = collections.c.key == collection.key
            done = connection.execute(select(collections.c.compacted).where(at)).scalar_one()
            upto = min(find_floor(connection, collection) or 0, done + MOST)
            if upto - done >= FEWEST:
                old = (changes.c.collection == collection.key) & (changes.c.sequence <= upto)
                connection.execute(delete(changes).where(old))
                connection.execute(update(collections).where(at).values(compacted=upto))
                return int(upto - done)
        return 0


def delete_old(connection: Connection, collection: Collection) -> None:
    """Forget the followers of a collection that were not seen for a day."""
    old = followers.c.seen_at < Now() - FLOOR_SECONDS
    connection.execute(delete(followers).where((followers.c.collection == collection.key) & old))


def find_floor(connection: Connection, collection: Collection) -> int | None:
    """The lowest change number of all followers; None without any, or while older servers may record none."""
    until = select(about.c.value, Now()).where(about.c.key == COMPACTS_FROM)
    if (row := connection.execute(until).one_or_none()) and row[1] < float(row[0]):
        return None
    slowest = select(func.min(followers.c.sequence)).where(followers.c.collection == collection.key)
    floor: int | None = connection.execute(slowest).scalar_one()  # None: nobody has noted anything yet
    return floor
