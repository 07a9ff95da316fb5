"""Collections in the making: under a name that no request can have, until they are whole."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, delete, select, update

from sameface.model.errors import AlreadyExists, UpkeepRunning
from sameface.model.files import exclusive_lock
from sameface.model.store.people import refuse_gone
from sameface.model.store.records import Collection
from sameface.model.store.store import Store
from sameface.model.store.tables import answers, collections, faces

FACES_AT_ONCE = 1_000  # that are deleted in one transaction


@contextmanager
def drafting(store: Store) -> Iterator[None]:
    """The one place where drafts are made: whatever else is found of them was left by a crash."""
    with exclusive_lock(store.path.with_suffix(".lock")) as alone:
        if not alone:
            raise UpkeepRunning("Another import or reembed is running on this gallery: wait for it to end.")
        yield


def refuse_taken(connection: Connection, name: str) -> None:
    """A collection of this name must not exist yet."""
    if connection.execute(select(collections.c.key).where(collections.c.name == name)).first():
        raise AlreadyExists(f"There is a collection {name!r} already: choose another name.")


def drop_leftovers(store: Store, name: str, kept: str | None = None) -> None:
    """Delete what crashes have left of this collection, but for the draft that is to be gone on with."""
    for draft in store.list_collections(drafts=True):
        if draft.name.startswith(f"{name} (") and draft.name != kept:
            drop(store, draft)


def drop(store: Store, draft: Collection) -> None:
    """Delete a collection that nobody sees, a piece at a time, so that no writer waits long."""
    some = select(faces.c.key).where(faces.c.collection == draft.key).limit(FACES_AT_ONCE)
    gone = FACES_AT_ONCE
    while gone == FACES_AT_ONCE:
        with store.writing() as connection:
            refuse_gone(connection, draft)  # published meanwhile, it is somebody's
            gone = connection.execute(delete(faces).where(faces.c.key.in_(some))).rowcount
    store.delete_collection(draft.name)


def publish(store: Store, draft: Collection, name: str) -> Collection:
    """Give a draft its name: from now on everybody sees it, and all of it."""
    with store.writing() as connection:
        refuse_taken(connection, name)
        rename(connection, draft, name)
    return store.get_collection(name)


def replace(connection: Connection, old: Collection, draft: Collection) -> None:
    """Give a draft the name of a collection, which is hidden instead; retries find their answers there."""
    refuse_gone(connection, old)
    rename(connection, old, f"{old.name} (replaced)")
    rename(connection, draft, old.name)
    connection.execute(
        update(collections).where(collections.c.key == draft.key).values(created_at=old.created_at)
    )
    connection.execute(update(answers).where(answers.c.collection == old.key).values(collection=draft.key))


def rename(connection: Connection, collection: Collection, name: str) -> None:
    """Give a collection another name."""
    refuse_gone(connection, collection)
    connection.execute(update(collections).where(collections.c.key == collection.key).values(name=name))
