"""Changes of whole people at once: give one's faces to another, part them, or forget everybody."""

from collections import Counter
from collections.abc import Sequence

from sqlalchemy import delete, select

from sameface.model.store.access.audit import Entry, record_entries, record_entry
from sameface.model.store.changes import record_changes
from sameface.model.store.collections import refuse_gone
from sameface.model.store.databases.database import Database
from sameface.model.store.databases.tables import faces, people
from sameface.model.store.people.newcomers import add_faces, add_people
from sameface.model.store.people.people import describe_forgotten, find_person, remove_person, restore_face
from sameface.model.store.records import Collection, NewPerson


class Wholesale:
    """Each change is one transaction, whatever the number of faces."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def delete_all(self, collection: Collection) -> tuple[int, int]:
        """Delete everybody of a collection; returns how many people and faces there were."""
        with self._database.writing(patient=True) as connection:
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
            gone = [(person, face) for _, person, face in everybody]
            fewer = {"people": -len(owned), "faces": -owned.total()}
            revision = record_changes(connection, collection, "delete", gone, **fewer)
            record_entries(
                connection,
                [
                    describe_forgotten(collection, person_id, revision, owned[person_id]).to_columns()
                    for person_id in owned
                ],
            )
        self._database.forget_log_soon()
        return len(owned), owned.total()

    def delete(self, collection: Collection, person_ids: Sequence[str]) -> None:
        """Delete people with all their faces and crops."""
        with self._database.writing() as connection:
            for person_id in person_ids:
                person = find_person(connection, collection, person_id)
                revision, gone = remove_person(connection, collection, person)
                record_entry(connection, describe_forgotten(collection, person_id, revision, gone))
        self._database.forget_log_soon()

    def merge(self, collection: Collection, person_ids: Sequence[str], into: str) -> None:
        """Give the faces of these people to the person `into`, and delete those who had them.

        The faces keep their ids and get new keys, so that an index sees them go and come.
        """
        with self._database.writing() as connection:
            target = find_person(connection, collection, into)
            for person_id in person_ids:
                source = find_person(connection, collection, person_id)
                owned = select(faces).where(faces.c.person == source).order_by(faces.c.key)
                moved = NewPerson(into, [restore_face(row, collection) for row in connection.execute(owned)])
                revision, gone = remove_person(connection, collection, source)
                record_entry(connection, describe_forgotten(collection, person_id, revision, gone))
                add_faces(connection, collection, target, moved)
        self._database.forget_log_soon()

    def part(self, collection: Collection, person_id: str, face_ids: Sequence[str] | None = None) -> None:
        """Make each of these faces of a person a person of its own, who has the id of the face.

        Without `face_ids` it is every face, and the person who had them is deleted.
        """
        with self._database.writing() as connection:
            person = find_person(connection, collection, person_id)
            meant = faces.c.person == person
            if face_ids is not None:
                meant &= faces.c.face_id.in_(face_ids)
            rows = connection.execute(select(faces).where(meant).order_by(faces.c.key)).all()
            if face_ids is None:
                revision, gone = remove_person(connection, collection, person)
                record_entry(connection, describe_forgotten(collection, person_id, revision, gone))
            elif rows:
                connection.execute(delete(faces).where(meant))
                gone_faces = [(person, row.key) for row in rows]
                revision = record_changes(connection, collection, "delete", gone_faces, faces=-len(rows))
                found = {"face_ids": [row.face_id for row in rows]}
                what = {"person_id": person_id, "revision": revision, "details": found}
                record_entry(connection, Entry.about(collection, "forget_face", **what))
            alone = [NewPerson(row.face_id, [restore_face(row, collection)]) for row in rows]
            add_people(connection, collection, alone)
        self._database.forget_log_soon()
