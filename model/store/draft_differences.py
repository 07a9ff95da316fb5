"""What a draft lacks of the collection that it is to replace; its caller holds the transaction."""

from sqlalchemy import ColumnElement, Connection, delete, exists, func, insert, literal, or_, select, update

from sameface.model.store.people import count_up, record_changes, restore_face
from sameface.model.store.records import Collection, NewPerson
from sameface.model.store.tables import faces, people

MIRRORED = ("name", "metadata", "created_at")  # of a person


def count_without_crop(connection: Connection, collection: Collection) -> tuple[int, int]:
    """How many people have faces without a crop, and how many such faces there are."""
    wanted = select(func.count(faces.c.person.distinct()), func.count()).where(
        (faces.c.collection == collection.key) & faces.c.crop.is_(None)
    )
    row = connection.execute(wanted).one()
    return row[0], row[1]


def read_missing(
    connection: Connection, old: Collection, draft: Collection, limit: int, after: int = 0
) -> tuple[int, list[NewPerson]]:
    """People with one face each that the draft lacks, in the order of the faces' keys, and the last key."""
    copies = faces.alias("copies")
    copied = exists().where((copies.c.collection == draft.key) & (copies.c.face_id == faces.c.face_id))
    of_old = faces.c.collection + 0 == old.key  # by key: through the index they would all be sorted first
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
            [restore_face(row)],
            row.person_name,
            row.person_metadata,
            may_exist=True,
            created_at=row.person_created_at,
        )
        for row in rows
    ]
    return (rows[-1].key if rows else after), newcomers


def mirror(connection: Connection, old: Collection, draft: Collection) -> None:
    """Let the draft forget whom the old one has forgotten, and know its other people as they are now."""
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
    came = connection.execute(insert(people).from_select(["collection", *columns], unknown)).rowcount
    changed = or_(*(people.c[column].is_distinct_from(twins.c[column]) for column in MIRRORED))
    connection.execute(
        update(people)
        .where((people.c.collection == draft.key) & twin_in(old) & changed)
        .values({column: twins.c[column] for column in MIRRORED})
    )
    count_up(connection, draft, people=came - left, faces=-len(gone))
