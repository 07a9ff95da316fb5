"""Exports collections into archives, and imports them."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from sameface.model.errors import AlreadyExists
from sameface.model.files import replacing
from sameface.model.observer import Progress, ignore_progress
from sameface.model.store.drafts import (
    drafting,
    drop_draft,
    drop_drafts,
    open_draft,
    publish_draft,
    refuse_taken,
)
from sameface.model.store.records import Collection, NewPerson, refuse_invalid_id
from sameface.model.store.store import Store
from sameface.model.upkeep.archive_file import Header, read_archive, write_archive
from sameface.model.upkeep.errors import ArchiveRefused

PEOPLE_AT_ONCE = 50  # read per query, with all their crops
FACES_AT_ONCE = 500  # written per transaction, while other writers wait


def export_collection(
    store: Store, name: str, path: Path, progress: Progress = ignore_progress
) -> Collection:
    """Write a snapshot of the collection `name` into a file that only its owner may read."""
    with store.frozen():
        collection = store.collections.get(name)
        header = Header.of(collection)
        try:
            with replacing(path, private=True) as file:
                write_archive(file, header, read_everybody(store, collection, progress))
        except OSError as error:
            raise ArchiveRefused(f"{path} cannot be written: {error.strerror}.") from error
    return collection


def read_everybody(store: Store, collection: Collection, progress: Progress) -> Iterator[NewPerson]:
    """The people of a collection by ascending id, `PEOPLE_AT_ONCE` in memory at a time."""
    done, after = 0, ""
    while some := store.people.whole_page(collection, PEOPLE_AT_ONCE, after):
        yield from some
        done, after = done + len(some), some[-1].person_id
        progress("exporting", done, collection.people)


def import_collection(
    store: Store, path: Path, name: str | None = None, progress: Progress = ignore_progress
) -> Collection:
    """Import an archive as the collection `name`, all or nothing: it is visible once everybody is in it."""
    header, people = read_archive(path)
    name = header.name if name is None else name
    refuse_invalid_id(name, "collection")
    with store.frozen() as connection:
        refuse_taken(connection, name)
    total = 0
    for total, _ in enumerate(people, 1):
        progress("checking", total, None)
    with drafting(store):
        drop_drafts(store, name)
        draft = open_draft(store, name, "importing", header.binding)
        try:
            again, people = read_archive(path)
            if again != header:
                raise ArchiveRefused(f"{path} has become another file: import it again.")
            fill(store, draft, people, total, progress)
            return publish_draft(store, draft)
        except BaseException:
            drop_draft(store, draft)
            raise


def fill(
    store: Store, draft: Collection, people: Iterable[NewPerson], total: int, progress: Progress
) -> None:
    """Enrol the people of an archive into a draft, a transaction per block."""
    done = 0
    for some in in_blocks(people):
        try:
            store.people.enroll(draft, some)
        except AlreadyExists as error:
            raise ArchiveRefused("Two faces of the archive have the same id: export it again.") from error
        done += len(some)
        progress("importing", done, total)


def in_blocks(people: Iterable[NewPerson]) -> Iterator[list[NewPerson]]:
    """Lists of people, each ended once it has `FACES_AT_ONCE` people and faces: one transaction's worth."""
    block: list[NewPerson] = []
    size = 0
    for person in people:
        block.append(person)
        size += 1 + len(person.faces)
        if size >= FACES_AT_ONCE:
            yield block
            block, size = [], 0
    if block:
        yield block
