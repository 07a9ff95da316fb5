"""Drafts: collections in the making, which no request sees until they are published."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import (
    JSON,
    ColumnElement,
    Connection,
    String,
    cast,
    delete,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    update,
)

from sameface.model.errors import AlreadyExists, UpkeepRunning
from sameface.model.store.access.audit import Entry, record_entry
from sameface.model.store.changes import number_changes, record_changes
from sameface.model.store.collections import insert_collection, refuse_gone
from sameface.model.store.databases.database import UPKEEP
from sameface.model.store.databases.tables import collections, faces, people, remembered_responses
from sameface.model.store.people.people import restore_face
from sameface.model.store.records import Binding, Collection, NewPerson
from sameface.model.store.store import Store

FACES_AT_ONCE = 1_000  # deleted per transaction
MIRRORED = ("name", "metadata", "created_at")  # columns of a person that `mirror` copies


@contextmanager
def drafting(store: Store) -> Iterator[None]:
    """Hold the lock under which drafts are made; raises if another process holds it.

    A draft that exists while nobody holds the lock was left by a crash.
    """
    store.refuse_read_only()
    with store.locked(UPKEEP) as alone:
        if not alone:
            raise UpkeepRunning("Another import or reembed is running on this gallery: wait for it to end.")
        yield


def open_draft(store: Store, name: str, purpose: str, binding: Binding) -> Collection:
    """The draft of the collection `name` for `purpose`: the one that an earlier run left, or a new one."""
    same = (collections.c.draft_of == name) & (collections.c.draft == purpose)
    with store.writing() as connection:
        row = connection.execute(select(collections).where(same)).first()
        if row:
            return Collection(**row._mapping)
        return insert_collection(connection, make_name(), binding, draft_of=name, draft=purpose)


def read_draft(store: Store, draft: Collection) -> Collection:
    """The draft with its current counters."""
    with store.frozen() as connection:
        row = connection.execute(select(collections).where(collections.c.key == draft.key)).one()
    return Collection(**row._mapping)


def list_drafts(store: Store, name: str | None = None) -> list[Collection]:
    """All drafts, or those of the collection `name`."""
    wanted = select(collections).where(collections.c.draft.is_not(None)).order_by(collections.c.key)
    with store.frozen() as connection:
        rows = connection.execute(wanted if name is None else wanted.where(collections.c.draft_of == name))
        return [Collection(**row._mapping) for row in rows]


def make_name() -> str:
    """A random name for a draft, unique as the table demands, and invalid in a request."""
    return f"(draft {secrets.token_hex(8)})"


def refuse_taken(connection: Connection, name: str) -> None:
    """Raise if a collection of this name exists."""
    if connection.execute(select(collections.c.key).where(collections.c.name == name)).first():
        raise AlreadyExists(f"There is a collection {name!r} already: choose another name.")


def drop_drafts(store: Store, name: str, kept: str | None = None) -> None:
    """Delete the drafts of the collection `name`, but for the one whose purpose is `kept`."""
    for draft in list_drafts(store, name):
        if draft.draft != kept:
            drop_draft(store, draft)


def drop_draft(store: Store, draft: Collection) -> None:
    """Delete a draft in several transactions, so that no other writer waits long."""
    some = select(faces.c.key).where(faces.c.collection == draft.key).limit(FACES_AT_ONCE)
    gone = FACES_AT_ONCE
    while gone == FACES_AT_ONCE:
        with store.writing(patient=True) as connection:
            refuse_gone(connection, draft)  # a draft that was published meanwhile must stay
            gone = connection.execute(delete(faces).where(faces.c.key.in_(some))).rowcount
    with store.writing(patient=True) as connection:
        connection.execute(delete(collections).where(collections.c.key == draft.key))


def publish_draft(store: Store, draft: Collection) -> Collection:
    """Make a draft the collection that it was drafted for, visible at once and as a whole; returns it."""
    name = str(draft.draft_of)
    with store.writing() as connection:
        refuse_taken(connection, name)
        refuse_gone(connection, draft)
        set_name(connection, draft, name, draft_of=None, draft=None)
        record_published(connection, draft, "import_collection")
    return store.collections.get(name)


def replace_with_draft(connection: Connection, old: Collection, draft: Collection) -> None:
    """Give a draft the name and the remembered responses of `old`, which becomes a draft itself."""
    refuse_gone(connection, old)
    refuse_gone(connection, draft)
    set_name(connection, old, make_name(), draft_of=old.name, draft="replaced")
    set_name(connection, draft, old.name, draft_of=None, draft=None)
    connection.execute(
        update(collections).where(collections.c.key == draft.key).values(created_at=old.created_at)
    )
    connection.execute(
        update(remembered_responses)
        .where(remembered_responses.c.collection == old.key)
        .values(collection=draft.key)
    )
    record_published(connection, draft, "reembed_collection")


def record_published(connection: Connection, draft: Collection, action: str) -> None:
    """Put the collection that a draft has become into the audit, with its numbers of people and faces."""
    row = connection.execute(select(collections).where(collections.c.key == draft.key)).one()
    published = Collection(**row._mapping)
    counts = {"people": published.people, "faces": published.faces}
    record_entry(connection, Entry.about(published, action, details=counts))


def set_name(
    connection: Connection, collection: Collection, name: str, *, draft_of: str | None, draft: str | None
) -> None:
    """Rename a collection, and make it a draft or a collection that requests can name."""
    connection.execute(
        update(collections)
        .where(collections.c.key == collection.key)
        .values(name=name, draft_of=draft_of, draft=draft)
    )


# A draft beside the collection that it will replace, inside the caller's transaction.


def count_without_crop(connection: Connection, collection: Collection) -> tuple[int, int]:
    """The number of people who have a face without a crop, and the number of faces without one."""
    wanted = select(func.count(faces.c.person.distinct()), func.count()).where(
        (faces.c.collection == collection.key) & faces.c.crop.is_(None)
    )
    row = connection.execute(wanted).one()
    return row[0], row[1]


def read_missing(
    connection: Connection, old: Collection, draft: Collection, limit: int, after: int = 0
) -> tuple[int, list[NewPerson]]:
    """The last key read, and up to `limit` faces of `old` that the draft lacks, each with its person.

    Faces come in the order of their keys, from the first key greater than `after`.
    """
    copies = faces.alias("copies")
    copied = exists().where((copies.c.collection == draft.key) & (copies.c.face_id == faces.c.face_id))
    of_old = faces.c.collection + 0 == old.key  # + 0 keeps SQLite from an index that needs a sort
    who = [people.c[column].label(f"person_{column}") for column in MIRRORED]
    wanted = (
        select(faces, people.c.person_id, *who)
        .join(people, people.c.key == faces.c.person)
        .where(of_old & (faces.c.key > after) & ~copied)
        .order_by(faces.c.key)
        .limit(limit)
    )
    rows = connection.execute(wanted).all()
    newcomers = [
        NewPerson(
            row.person_id,
            [restore_face(row, old)],
            row.person_name,
            row.person_metadata,
            may_exist=True,
            created_at=row.person_created_at,
        )
        for row in rows
    ]
    return (rows[-1].key if rows else after), newcomers


def as_text(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """The column, or its text if it is JSON, which not every database can compare."""
    return cast(column, String) if isinstance(column.type, JSON) else column


def mirror(connection: Connection, old: Collection, draft: Collection) -> None:
    """Make the draft's people those of `old`: delete people and faces, add and update people."""
    refuse_gone(connection, old)  # nobody else writes to it until the transaction ends
    refuse_gone(connection, draft)
    theirs, twins = faces.alias("theirs"), people.alias("twins")
    same_face = (theirs.c.collection == old.key) & (theirs.c.face_id == faces.c.face_id)
    gone = connection.execute(
        delete(faces)
        .where((faces.c.collection == draft.key) & ~exists().where(same_face))
        .returning(faces.c.person, faces.c.key)
    ).all()
    if gone:
        record_changes(connection, draft, "delete", [(row.person, row.key) for row in gone])

    def twin_in(collection: Collection) -> ColumnElement[bool]:
        return (twins.c.collection == collection.key) & (twins.c.person_id == people.c.person_id)

    left = connection.execute(
        delete(people).where((people.c.collection == draft.key) & ~exists().where(twin_in(old)))
    ).rowcount
    columns = ("person_id", *MIRRORED)
    unknown = select(literal(draft.key), *(people.c[column] for column in columns)).where(
        (people.c.collection == old.key) & ~exists().where(twin_in(draft))
    )
    added = insert(people).from_select(["collection", *columns], unknown).returning(people.c.key)
    came = len(connection.execute(added).all())
    changed = or_(
        *(as_text(people.c[column]).is_distinct_from(as_text(twins.c[column])) for column in MIRRORED)
    )
    connection.execute(
        update(people)
        .where((people.c.collection == draft.key) & twin_in(old) & changed)
        .values({column: twins.c[column] for column in MIRRORED})
    )
    number_changes(connection, draft, 0, people=came - left, faces=-len(gone))
