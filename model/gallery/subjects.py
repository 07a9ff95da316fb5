"""People by what they are called, as clients of other servers know them: a subject is a person's name.

Names are matched without regard to case. Who was enrolled without a name is called by the id.
"""

from collections.abc import Iterable
from contextlib import suppress

from sameface.model.errors import AlreadyExists, FaceNotFound, PersonNotFound
from sameface.model.faces import Embedding
from sameface.model.gallery.gallery import Gallery
from sameface.model.store.people.person_ids import list_ids
from sameface.model.store.records import Collection, FaceOwner, NewPerson


def find_subject(gallery: Gallery, collection: Collection, subject: str) -> str:
    """The id of the person who is called `subject`."""
    person_id = gallery.store.lookups.called(collection, subject)
    if person_id is None:
        raise PersonNotFound(f"Subject {subject} not found")
    return person_id


def choose_person_id(gallery: Gallery, collection: Collection, subject: str) -> str:
    """The id of the person who is called `subject`, or one that is free for a new person of this name."""
    known = gallery.store.lookups.called(collection, subject)
    free = (each for each in list_ids(subject) if find_name(gallery, collection, each) is None)
    return known or next(free)


def find_name(gallery: Gallery, collection: Collection, person_id: str) -> str | None:
    """What the person of an id is called; None if nobody has the id."""
    try:
        return gallery.get_person(collection, person_id).name or person_id
    except PersonNotFound:
        return None


def add_subject(gallery: Gallery, collection: Collection, subject: str) -> None:
    """Enrol a person by name alone, whose faces follow; raises if the name is taken."""
    if gallery.store.lookups.called(collection, subject) is not None:
        raise AlreadyExists("Subject already exists")
    person_id = choose_person_id(gallery, collection, subject)
    gallery.enroll(collection, [NewPerson(person_id, [], subject)])


def list_subjects(gallery: Gallery, collection: Collection) -> list[str]:
    """What everybody of a collection is called, in order."""
    return gallery.store.lookups.names(collection)


def rename_subject(gallery: Gallery, collection: Collection, subject: str, name: str) -> bool:
    """Rename a subject, or give its faces to the subject with that name; False if nothing changes."""
    person_id = find_subject(gallery, collection, subject)
    other = gallery.store.lookups.called(collection, name) if name else person_id
    if other not in (None, person_id):
        gallery.store.wholesale.merge(collection, [person_id], str(other))
        gallery.indexes.keep_forgetting()
        return True
    if not name or find_name(gallery, collection, person_id) == name:
        return False
    gallery.update_person(collection, person_id, {"name": name})
    return True


def forget_subject(gallery: Gallery, collection: Collection, subject: str) -> int:
    """Delete the person who is called `subject`; returns how many faces are gone."""
    person = gallery.get_person(collection, find_subject(gallery, collection, subject))
    gallery.forget_person(collection, person.person_id)
    return len(person.faces)


def forget_faces_of(gallery: Gallery, collection: Collection, subject: str) -> int:
    """Delete the person who is called `subject`, if there is one; returns how many faces are gone."""
    try:
        return forget_subject(gallery, collection, subject)
    except PersonNotFound:
        return 0


def list_faces(
    gallery: Gallery, collection: Collection, limit: int, offset: int, subject: str | None
) -> tuple[list[FaceOwner], int]:
    """Up to `limit` faces after the first `offset`, of one subject or of all, and how many there are."""
    if subject is None:
        return gallery.store.lookups.face_page(collection, limit, offset), collection.faces
    person_id = gallery.store.lookups.called(collection, subject)
    if person_id is None:
        return [], 0
    count = len(gallery.get_person(collection, person_id).faces)
    return gallery.store.lookups.face_page(collection, limit, offset, person_id), count


def find_face(gallery: Gallery, collection: Collection, face_id: str) -> tuple[FaceOwner, Embedding]:
    """The owner of a face, and its embedding."""
    owner, _ = gallery.store.lookups.owner_of(collection, face_id)
    return owner, gallery.get_embeddings(collection, owner.person_id)[face_id]


def find_crop(gallery: Gallery, collection: Collection, face_id: str) -> bytes:
    """The crop of a face as PNG; empty if the collection stores none."""
    return gallery.store.lookups.owner_of(collection, face_id)[1] or b""


def forget_face(gallery: Gallery, collection: Collection, face_id: str) -> FaceOwner:
    """Delete a face; returns whose it was."""
    owner, _ = gallery.store.lookups.owner_of(collection, face_id)
    gallery.forget_face(collection, owner.person_id, face_id)
    return owner


def forget_faces(gallery: Gallery, collection: Collection, face_ids: Iterable[str]) -> list[FaceOwner]:
    """Delete faces; returns their owners, and leaves out unknown ids."""
    owners = []
    for face_id in dict.fromkeys(face_ids):
        with suppress(FaceNotFound):
            owners.append(forget_face(gallery, collection, face_id))
    return owners
