"""Changes of whole people at once: give one's faces to another, or forget everybody of a collection."""

from collections import Counter

from sqlalchemy import delete, select

from sameface.model.store.audit import record_entries, record_entry
from sameface.model.store.changes import record_changes
from sameface.model.store.collections import add_to_counters, refuse_gone
from sameface.model.store.databases.database import Database
from sameface.model.store.databases.tables import faces, people
from sameface.model.store.people import (
    add_faces,
    describe_forgotten,
    find_person,
    record_newcomers,
    remove_person,
    restore_face,
)
from sameface.model.store.records import Collection, NewPerson


class Wholesale:
    """Each change is one transaction, whatever the number of faces."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def delete_all(self, collection: Collection) -> tuple[int, int]:
        """Delete everybody of a collection; returns how many people and faces there were."""
        with self._database.writing() as connection:
            refuse_gone(connection, collection)
            everybody = connection.execute(
                select(people.c.person_id, people.c.key, faces.c.key)
                .outerjoin(faces, faces.c.person == people.c.key)
                .where(people.c.collection == collection.key)
            ).all()
            if not everybody:
                return 0, 0
            connection.execute(delete(people).where(people.c.collection == collection.key))
            owned = Counter({person_id: 0 for person_id, _, _ in everybody})
            owned.update(person_id for person_id, _, face in everybody if face is not None)
            add_to_counters(connection, collection, people=-len(owned), faces=-owned.total())
            gone = [(person, face) for _, person, face in everybody]
            revision = record_changes(connection, collection, "delete", gone)
            record_entries(
                connection,
                [
                    describe_forgotten(collection, person_id, revision, owned[person_id])
                    for person_id in owned
                ],
            )
        self._database.forget_log_soon()
        return len(owned), owned.total()

    def merge(self, collection: Collection, person_id: str, into: str) -> None:
        """Give the faces of a person to the person `into`, and delete the one who had them.

        The faces keep their ids and get new keys, so that an index sees them go and come.
        """
        with self._database.writing() as connection:
            source = find_person(connection, collection, person_id)
            target = find_person(connection, collection, into)
            owned = select(faces).where(faces.c.person == source).order_by(faces.c.key)
            moved = NewPerson(into, [restore_face(row, collection) for row in connection.execute(owned)])
            revision, gone = remove_person(connection, collection, source)
            record_entry(connection, describe_forgotten(collection, person_id, revision, gone))
            _, revision = add_faces(connection, collection, {into: target}, [moved])
            add_to_counters(connection, collection, people=0, faces=gone)
            record_newcomers(connection, collection, [moved], frozenset([into]), revision)
        self._database.forget_log_soon()
