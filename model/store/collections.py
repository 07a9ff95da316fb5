"""Collections in the store: create, read, delete; each has a counter of its people and of its faces."""

import time
from collections.abc import Sequence

from sqlalchemy import (
    ColumnElement,
    Connection,
    bindparam,
    delete,
    false,
    func,
    insert,
    or_,
    select,
    true,
)

from sameface.model.actor import current_actor
from sameface.model.errors import AlreadyExists, CollectionNotFound, RateLimited
from sameface.model.store.access.api_key import ANYTHING
from sameface.model.store.access.audit import Entry, Head, find_head, record_entry
from sameface.model.store.databases.database import Database
from sameface.model.store.databases.tables import chains, collections
from sameface.model.store.records import Binding, Collection

# Built once: every search or write runs one, and SQLAlchemy takes longer to build it than SQLite to run it.
COLLECTION_NAMED = select(collections).where(
    (collections.c.name == bindparam("name")) & collections.c.draft.is_(None)
)

LOCK_COLLECTION = (
    select(collections.c.key)
    .where((collections.c.key == bindparam("of")) & (collections.c.name == bindparam("name")))
    .with_for_update()
)

# Both in one query: a database on a server is asked once less.
LOCK_COLLECTION_AND_CHAIN = (
    select(chains.c.chain, chains.c.number, chains.c.hash)
    .join(collections, collections.c.key == bindparam("of"))
    .where((collections.c.name == bindparam("name")) & (chains.c.chain == bindparam("chain")))
    .with_for_update()
)


class Collections:
    """The collections that requests can name; drafts are not among them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, name: str, binding: Binding) -> tuple[Collection, bool]:
        """The collection `name` and whether it is new; raises if it exists with another binding."""
        try:
            with self._database.writing(alone=True) as connection:
                row = connection.execute(COLLECTION_NAMED, {"name": name}).one_or_none()
                if row is None:
                    refuse_over_quota(connection, "collections", 1)
                    made = insert_collection(connection, name, binding)
                    record_entry(connection, Entry.about(made, "create_collection"))
                    return made, True
            found = Collection(**row._mapping)
        except AlreadyExists:  # another writer has made it since it was looked for
            found = self.get(name)
        different = found.binding.differences(binding)
        if different:
            raise AlreadyExists(f"The collection {name!r} exists with another {', '.join(different)}.")
        return found, False

    def get(self, name: str) -> Collection:
        """The collection `name`."""
        with self._database.statement() as connection:
            row = connection.execute(COLLECTION_NAMED, {"name": name}).one_or_none()
        if row is None:
            raise CollectionNotFound(f"There is no collection {name!r}.")
        return Collection(**row._mapping)

    def page(
        self, limit: int | None = None, after: str = "", within: Sequence[str] | None = None
    ) -> list[Collection]:
        """Up to `limit` collections by name, from the first whose name is greater than `after`.

        Those that fit none of `within`, names or prefixes, are left out.
        """
        shown = (collections.c.name > after) & collections.c.draft.is_(None) & lies_within(within)
        wanted = select(collections).where(shown).order_by(collections.c.name).limit(limit)
        with self._database.reading() as connection:
            return [Collection(**row._mapping) for row in connection.execute(wanted)]

    def of_recognizer(self, identity: str) -> list[Collection]:
        """The collections and drafts of a recogniser, by key."""
        wanted = select(collections).where(collections.c.identity == identity).order_by(collections.c.key)
        with self._database.reading() as connection:
            return [Collection(**row._mapping) for row in connection.execute(wanted)]

    def all_keys(self) -> set[int]:
        """The keys of all collections and drafts."""
        with self._database.reading() as connection:
            return set(connection.execute(select(collections.c.key)).scalars())

    def delete(self, name: str) -> None:
        """Delete a collection with all its people and faces."""
        with self._database.writing(patient=True) as connection:
            row = connection.execute(COLLECTION_NAMED.with_for_update(), {"name": name}).one_or_none()
            if row is None:
                raise CollectionNotFound(f"There is no collection {name!r}.")
            connection.execute(delete(collections).where(collections.c.key == row.key))
            gone = Collection(**row._mapping)
            counts = {"people": gone.people, "faces": gone.faces}
            record_entry(connection, Entry.about(gone, "delete_collection", details=counts))
        self._database.forget_log_soon()


def insert_collection(
    connection: Connection,
    name: str,
    binding: Binding,
    *,
    draft_of: str | None = None,
    draft: str | None = None,
) -> Collection:
    """A new, empty collection, or with `draft_of` and `draft` a new draft."""
    values = {
        **binding.to_columns(),
        "name": name,
        "revision": 0,
        "people": 0,
        "faces": 0,
        "created_at": time.time(),
        "draft_of": draft_of,
        "draft": draft,
    }
    row = connection.execute(insert(collections).values(values).returning(*collections.c)).one()
    return Collection(**row._mapping)


def lies_within(places: Sequence[str] | None) -> ColumnElement[bool]:
    """The condition that a collection fits one of `places`, names or prefixes that end in `*`; None: any."""
    if places is None:
        return true()
    name = collections.c.name
    return or_(
        false(),
        *(
            func.substr(name, 1, len(place) - 1) == place[:-1] if place.endswith(ANYTHING) else name == place
            for place in places
        ),
    )


def has_quota(counted: str) -> bool:
    """Whether the current actor has a quota of faces or collections (`counted`): a write then counts them."""
    return any(quota.counted == counted for quota in current_actor().quotas)


def refuse_over_quota(connection: Connection, counted: str, more: int) -> None:
    """Raise RateLimited if `more` faces or collections would exceed a quota of the current actor."""
    for quota in current_actor().quotas:
        if quota.counted != counted:
            continue
        amount = func.sum(collections.c.faces) if counted == "faces" else func.count()
        there = select(func.coalesce(amount, 0)).where(lies_within(quota.within))
        found = connection.execute(there.where(collections.c.draft.is_(None))).scalar_one()
        if found + more > quota.limit:
            raise RateLimited(
                f"There may be {quota.limit} {counted} here, and there are {found}: delete some, or have the "
                "limit raised.",
                limit=quota.limit,
            )


def refuse_gone(connection: Connection, collection: Collection) -> None:
    """Raise if the collection was deleted or replaced since it was read: it takes no more writes.

    Every write begins with it, because it locks the collection's row: a collection has one writer at a time.
    """
    same = {"of": collection.key, "name": collection.name}
    if not connection.execute(LOCK_COLLECTION, same).first():
        raise CollectionNotFound(f"There is no collection {collection.name!r} any more.")


def enter_collection(connection: Connection, collection: Collection) -> Head:
    """Lock the collection, or raise if it is gone; returns the head of the connection's audit chain."""
    wanted = {"of": collection.key, "name": collection.name, "chain": connection.info.get("chain")}
    if row := connection.execute(LOCK_COLLECTION_AND_CHAIN, wanted).one_or_none():
        return row.chain, row.number, row.hash
    refuse_gone(connection, collection)
    return find_head(connection)
