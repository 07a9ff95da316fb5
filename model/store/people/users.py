"""Users, and faces with or without one: a face without a user is a person of its own, with the face's id."""

from collections.abc import Sequence

from sqlalchemy import exists, func, select

from sameface.model.store.databases.database import Database
from sameface.model.store.databases.tables import faces, people
from sameface.model.store.records import Collection, KnownFace, User

own = faces.alias("own")
IS_ALONE = exists().where(
    (own.c.collection == people.c.collection)
    & (own.c.face_id == people.c.person_id)
    & (own.c.person == people.c.key)
)
KNOWN_FACES = select(
    people.c.person_id, people.c.name, faces.c.face_id, faces.c.key, faces.c.photo, faces.c.details
).join(people, people.c.key == faces.c.person)


class Users:
    """Looks up users, and the faces of a collection with what is kept of their photos."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def count(self, collection: Collection) -> int:
        """How many people of a collection are users."""
        wanted = select(func.count()).where((people.c.collection == collection.key) & ~IS_ALONE)
        with self._database.reading() as connection:
            return int(connection.execute(wanted).scalar_one())

    def page(self, collection: Collection, limit: int, after: str = "") -> list[User]:
        """Up to `limit` users by id, from the first whose id is greater than `after`."""
        owned = select(func.count()).where(faces.c.person == people.c.key).scalar_subquery()
        meant = (people.c.collection == collection.key) & (people.c.person_id > after) & ~IS_ALONE
        wanted = select(people.c.person_id, people.c.name, owned.label("faces")).where(meant)
        with self._database.reading() as connection:
            rows = connection.execute(wanted.order_by(people.c.person_id).limit(limit))
            return [User(*row) for row in rows]

    def faces(
        self,
        collection: Collection,
        limit: int | None = None,
        after: int = 0,
        face_ids: Sequence[str] | None = None,
        person_id: str | None = None,
    ) -> list[KnownFace]:
        """Up to `limit` faces whose keys are greater than `after`, of these ids or of one person, by key."""
        wanted = KNOWN_FACES.where((faces.c.collection == collection.key) & (faces.c.key > after))
        if face_ids is not None:
            wanted = wanted.where(faces.c.face_id.in_(face_ids))
        if person_id is not None:
            wanted = wanted.where(people.c.person_id == person_id)
        with self._database.reading() as connection:
            rows = connection.execute(wanted.order_by(faces.c.key).limit(limit))
            return [KnownFace(*row) for row in rows]
