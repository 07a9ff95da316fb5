"""Names come from memory, and are always those of the store."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sameface.model.bundles.bundle import Bundle
from sameface.model.gallery import known_owners
from sameface.model.gallery.gallery import Gallery
from sameface.model.store.people.lookups import Lookups
from sameface.model.store.records import Collection, CollectionState, FaceOwner
from tests.model.people import newcomer, random_units
from tests.networks import DIMENSION
from tests.postgres_server import gallery_in

PEOPLE = random_units(6, DIMENSION).reshape(3, 2, DIMENSION)


@pytest.fixture
def gallery(bundle: Bundle, tmp_path: Path) -> Iterator[Gallery]:
    gallery = Gallery(gallery_in(tmp_path), bundle)
    staff, _ = gallery.create_collection("staff")
    gallery.enroll(
        staff, [newcomer(f"p{number}", faces, name=f"N{number}") for number, faces in enumerate(PEOPLE)]
    )
    yield gallery
    gallery.close()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The keys of the faces whose owners were read from the store."""
    keys: list[int] = []
    owners_of = Lookups.owners_of

    def watch(
        lookups: Lookups, collection: Collection, faces: set[int]
    ) -> tuple[CollectionState | None, dict[int, FaceOwner]]:
        keys.extend(faces)
        return owners_of(lookups, collection, faces)

    monkeypatch.setattr(Lookups, "owners_of", watch)
    return keys


def names(gallery: Gallery) -> list[str | None]:
    staff = gallery.get_collection("staff")
    found = gallery.search(staff, PEOPLE[:, 0], 1)
    return [owner.name for owner in found.owners]


def test_the_second_search_reads_no_name(gallery: Gallery, asked: list[int]) -> None:
    assert names(gallery) == names(gallery) == ["N0", "N1", "N2"]
    assert len(asked) == 3


def test_a_new_name_is_in_the_next_answer_of_every_process(
    gallery: Gallery, bundle: Bundle, tmp_path: Path, asked: list[int]
) -> None:
    names(gallery)
    other = Gallery(gallery_in(tmp_path), bundle)
    other.update_person(other.get_collection("staff"), "p1", {"name": "New"})
    other.close()
    asked.clear()
    assert names(gallery) == ["N0", "New", "N2"]
    assert len(asked) == 1


def test_whoever_is_deleted_while_a_search_runs_is_in_no_answer(
    gallery: Gallery, monkeypatch: pytest.MonkeyPatch
) -> None:
    names(gallery)  # all are known
    staff = gallery.get_collection("staff")
    index = gallery.indexes.follow(staff)
    search = index.search

    def slowly(*look: object, **options: bool) -> object:
        found = search(*look, **options)
        gallery.store.people.delete(staff, "p0")
        gallery.store.people.delete_face(staff, "p1", "p1-0")
        gallery.store.people.update(staff, "p2", {"name": "New"})
        return found

    monkeypatch.setattr(index, "search", slowly)
    found = gallery.search(staff, PEOPLE[:, 0], 1)
    assert found.starts.tolist() == [0, 0, 0, 1]
    assert [owner.name for owner in found.owners] == ["New"]


def test_nobody_is_found_in_a_collection_that_was_deleted_and_known(gallery: Gallery) -> None:
    names(gallery)
    staff = gallery.get_collection("staff")
    owners = gallery._get_owners(staff)
    gallery.store.collections.delete("staff")
    assert owners.find([1, 3, 5]) == (None, [None, None, None])


def test_a_name_that_was_read_before_a_change_does_not_stay(
    gallery: Gallery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One thread has read the old name and waits; another follows the change, and then asks again."""
    staff = gallery.get_collection("staff")
    owners, owners_of = gallery._get_owners(staff), Lookups.owners_of
    renamed, late = threading.Event(), threading.Event()

    def read_and_wait(
        lookups: Lookups, collection: Collection, faces: set[int]
    ) -> tuple[CollectionState | None, dict[int, FaceOwner]]:
        found = owners_of(lookups, collection, faces)
        late.set()
        renamed.wait(10)
        return found

    monkeypatch.setattr(Lookups, "owners_of", read_and_wait)
    first = threading.Thread(target=owners.find, args=([3],))
    first.start()
    late.wait(10)
    monkeypatch.setattr(Lookups, "owners_of", owners_of)
    gallery.update_person(staff, "p1", {"name": "New"})
    second = threading.Thread(target=owners.find, args=([3],))
    second.start()
    renamed.set()
    first.join()
    second.join()
    assert [owner.name for owner in owners.find([3])[1] if owner] == ["New"]


def test_memory_holds_no_more_than_a_limit(gallery: Gallery, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_owners, "MOST_KNOWN", 2)
    owners = gallery._get_owners(gallery.get_collection("staff"))
    assert None not in owners.find([1, 2, 3, 4, 5])[1]
    owners.find([6])
    assert len(owners._owners) == 1
