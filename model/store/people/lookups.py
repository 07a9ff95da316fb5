"""People and faces found otherwise than by a person's id: by name, by face id, by photo, by place."""

from collections.abc import Iterable, Sequence

from sqlalchemy import bindparam, func, select

from sameface.model.errors import FaceNotFound
from sameface.model.store.databases.database import Database
from sameface.model.store.databases.one_of import OneOf
from sameface.model.store.databases.tables import collections, faces, people
from sameface.model.store.records import Collection, CollectionState, FaceOwner

LABEL = func.coalesce(func.nullif(people.c.name, ""), people.c.person_id)  # who has no name goes by the id
FACES_OF_COLLECTION = select(people.c.person_id, people.c.name, faces.c.face_id, faces.c.crop).join(
    people, people.c.key == faces.c.person
)


STATE = [collections.c[name] for name in CollectionState._fields]

# Built once: every search runs this query, and SQLAlchemy takes longer to build it than SQLite to run it.
# A row per face, or one without a face.
OWNERS_OF_FACES = (
    select(*STATE, faces.c.key, people.c.person_id, people.c.name, faces.c.face_id)
    .select_from(collections)
    .join(faces, OneOf(faces.c.key, "keys"), isouter=True)
    .join(people, people.c.key == faces.c.person, isouter=True)
    .where(collections.c.key == bindparam("of"))
)


class Lookups:
    """Looks up people by what they are called and by their photos, and faces by their own ids."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def called(self, collection: Collection, name: str) -> str | None:
        """The id of the first person of this name, without regard to case; who has no name goes by the id."""
        # A database's lower() may know ASCII alone: names with other letters are compared here.
        likely = (func.lower(LABEL) == name.lower()) | LABEL.regexp_match("[^ -~]")
        wanted = select(people.c.person_id, LABEL).where((people.c.collection == collection.key) & likely)
        with self._database.reading() as connection:
            for person_id, known in connection.execute(wanted.order_by(people.c.key)):
                if known.casefold() == name.casefold():
                    return str(person_id)
        return None

    def owners_of(
        self, collection: Collection, face_keys: Iterable[int]
    ) -> tuple[CollectionState | None, dict[int, FaceOwner]]:
        """The collection's state, and as of that the person and face id of each face key.

        Faces that are deleted are left out; the state of a collection that is deleted is None.
        """
        with self._database.statement() as connection:
            wanted = {"of": collection.key, "keys": face_keys}
            rows = connection.execute(OWNERS_OF_FACES, wanted).all()
        state = CollectionState(*rows[0][: len(STATE)]) if rows else None
        found = (row[len(STATE) :] for row in rows)
        return state, {key: FaceOwner(*owner) for key, *owner in found if key is not None}

    def names(self, collection: Collection) -> list[str]:
        """What everybody of a collection is called, in order; who has no name goes by the id."""
        wanted = select(LABEL).where(people.c.collection == collection.key).order_by(LABEL)
        with self._database.reading() as connection:
            return list(connection.execute(wanted).scalars())

    def face_page(
        self, collection: Collection, limit: int, offset: int = 0, person_id: str | None = None
    ) -> list[FaceOwner]:
        """Up to `limit` faces of a collection, or of one person, after the first `offset`, earliest first."""
        wanted = FACES_OF_COLLECTION.where(faces.c.collection == collection.key)
        if person_id is not None:
            wanted = wanted.where(people.c.person_id == person_id)
        with self._database.reading() as connection:
            found = connection.execute(wanted.order_by(faces.c.key).limit(limit).offset(offset)).all()
        return [FaceOwner(row.person_id, row.name, row.face_id) for row in found]

    def owner_of(self, collection: Collection, face_id: str) -> tuple[FaceOwner, bytes | None]:
        """The owner of a face, and the face's crop if the collection stores crops."""
        same = (faces.c.collection == collection.key) & (faces.c.face_id == face_id)
        with self._database.reading() as connection:
            row = connection.execute(FACES_OF_COLLECTION.where(same)).one_or_none()
        if row is None:
            raise FaceNotFound(f"There is no face {face_id!r} in {collection.name!r}.")
        return FaceOwner(row.person_id, row.name, row.face_id), row.crop

    def existing_faces(self, collection: Collection, face_ids: Sequence[str]) -> set[str]:
        """Those of the ids that are faces of the collection."""
        wanted = select(faces.c.face_id).where(
            (faces.c.collection == collection.key) & faces.c.face_id.in_(face_ids)
        )
        with self._database.reading() as connection:
            return set(connection.execute(wanted).scalars())

    def owners_of_photos(self, collection: Collection, photos: Sequence[str]) -> dict[str, list[str]]:
        """By SHA-256 of the photos that were enrolled before: the ids of their people, earliest first."""
        wanted = (
            select(faces.c.photo, people.c.person_id)
            .join(people, people.c.key == faces.c.person)
            .where((faces.c.collection == collection.key) & faces.c.photo.in_(photos))
            .order_by(faces.c.key)
        )
        found: dict[str, list[str]] = {}
        with self._database.reading() as connection:
            for photo, person_id in connection.execute(wanted):
                found.setdefault(photo, []).append(person_id)
        return found
