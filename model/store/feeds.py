"""How far collections were fed into Milvus, which keeps no record of its own that could be trusted alone."""

from sqlalchemy import delete, insert, select, update

from sameface.model.store.databases.database import Database
from sameface.model.store.databases.tables import collections, feeds
from sameface.model.store.records import Collection, Feed

IS_ABANDONED = feeds.c.identity.not_in(select(collections.c.identity))


class Feeds:
    """A feed per collection that was sent to Milvus, kept until a deleted collection is gone from Milvus."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, collection: Collection) -> Feed:
        """The feed of a collection as it is now; nothing was fed if there is none."""
        wanted = select(feeds.c.collection, feeds.c.sequence, feeds.c.mark)
        with self._database.newest() as connection:
            row = connection.execute(wanted.where(feeds.c.collection == collection.key)).one_or_none()
        return Feed(*row) if row else Feed(collection.key)

    def all_of(self, identity: str) -> dict[int, Feed]:
        """By collection key: the feeds of the recogniser `identity`, those of deleted collections too."""
        wanted = select(feeds.c.collection, feeds.c.sequence, feeds.c.mark)
        with self._database.reading() as connection:
            rows = connection.execute(wanted.where(feeds.c.identity == identity))
            return {row.collection: Feed(*row) for row in rows}

    def add(self, collection: Collection) -> Feed:
        """A new feed of nothing, written before anything is sent, so that what is sent can be found again."""
        feed = Feed(collection.key)
        with self._database.writing() as connection:
            connection.execute(
                insert(feeds).values(
                    collection=feed.collection, identity=collection.identity, sequence=0, mark=0
                )
            )
        return feed

    def advance(self, feed: Feed, to: Feed) -> bool:
        """Replace `feed` by `to`; False if it is no longer what is stored: another process feeds, too."""
        same = (feeds.c.collection == feed.collection) & (feeds.c.mark == feed.mark)
        change = update(feeds).where(same).values(sequence=to.sequence, mark=to.mark)
        with self._database.writing() as connection:
            return connection.execute(change).rowcount == 1

    def abandoned(self) -> list[str]:
        """The recognisers that something was fed for, and that no collection belongs to any more."""
        with self._database.reading() as connection:
            return list(connection.execute(select(feeds.c.identity).where(IS_ABANDONED).distinct()).scalars())

    def remove_abandoned(self, identity: str) -> None:
        """Delete the feeds of a recogniser that no collection belongs to."""
        with self._database.writing() as connection:
            connection.execute(delete(feeds).where((feeds.c.identity == identity) & IS_ABANDONED))

    def remove(self, feed: Feed) -> None:
        """Delete the feed of a collection that is in Milvus no more."""
        with self._database.writing() as connection:
            connection.execute(delete(feeds).where(feeds.c.collection == feed.collection))
