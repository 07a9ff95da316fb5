"""A collection that did not change is not read before a search, and every change is seen all the same."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sameface.model.bundles.bundle import Bundle
from sameface.model.errors import CollectionNotFound
from sameface.model.gallery.gallery import Gallery
from sameface.model.store.collections import Collections
from sameface.model.store.drafts import open_draft, replace_with_draft
from sameface.model.store.records import Collection
from tests.model.people import newcomer, random_units
from tests.networks import DIMENSION
from tests.postgres_server import gallery_in

PEOPLE = random_units(3, DIMENSION)


@pytest.fixture
def gallery(bundle: Bundle, tmp_path: Path) -> Iterator[Gallery]:
    gallery = Gallery(gallery_in(tmp_path), bundle)
    staff, _ = gallery.create_collection("staff")
    gallery.enroll(staff, [newcomer(f"p{number}", PEOPLE[number : number + 1]) for number in range(2)])
    yield gallery
    gallery.close()


@pytest.fixture
def other(bundle: Bundle, tmp_path: Path) -> Iterator[Gallery]:
    """The same gallery in another process."""
    other = Gallery(gallery_in(tmp_path), bundle)
    yield other
    other.close()


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the collections that were read before a search."""
    names: list[str] = []
    get = Collections.get

    def watch(store: Collections, name: str) -> Collection:
        names.append(name)
        return get(store, name)

    monkeypatch.setattr(Collections, "get", watch)
    return names


def look(gallery: Gallery, probe: int = 0) -> tuple[int, list[str]]:
    """How many people the collection has, and who is most like the probe."""
    staff, candidates = gallery.search_newest("staff", PEOPLE[probe : probe + 1], 1)
    return staff.people, [owner.person_id for owner in candidates.owners]


def settle(gallery: Gallery) -> None:
    """Search until the collection counts as one that does not change."""
    for _ in range(3):
        assert look(gallery) == (2, ["p0"])


def test_a_collection_that_does_not_change_is_read_no_more(gallery: Gallery, reads: list[str]) -> None:
    settle(gallery)
    assert reads == ["staff", "staff"]
    settle(gallery)
    assert len(reads) == 2


def test_one_that_changes_all_the_time_is_read_first_and_searched_once(
    gallery: Gallery, other: Gallery, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    staff = other.get_collection("staff")
    searches: list[int] = []
    search = gallery.indexes.search

    def watch(*given: object, **named: object) -> object:
        searches.append(1)
        return search(*given, **named)

    monkeypatch.setattr(gallery.indexes, "search", watch)
    reads.clear()
    for number in range(5):
        other.enroll(staff, [newcomer(f"new{number}", random_units(1, DIMENSION, 10 + number))])
        look(gallery)
    assert (len(reads), len(searches)) == (5, 5)


def test_who_was_enrolled_by_another_process_is_found_by_the_next_search(
    gallery: Gallery, other: Gallery
) -> None:
    settle(gallery)
    other.enroll(other.get_collection("staff"), [newcomer("p2", PEOPLE[2:])])
    assert look(gallery, 2) == (3, ["p2"])


def test_who_was_deleted_by_another_process_is_found_no_more(gallery: Gallery, other: Gallery) -> None:
    settle(gallery)
    other.forget_person(other.get_collection("staff"), "p0")
    assert look(gallery) == (1, ["p1"])


def test_a_collection_that_was_deleted_or_made_anew_is_not_taken_for_the_old_one(
    gallery: Gallery, other: Gallery
) -> None:
    settle(gallery)
    other.delete_collection("staff")
    with pytest.raises(CollectionNotFound):
        look(gallery)
    staff, _ = other.create_collection("staff")
    other.enroll(staff, [newcomer("p1", PEOPLE[1:2])])
    assert look(gallery) == (1, ["p1"])


def test_a_collection_that_was_replaced_is_not_searched_under_its_name(
    gallery: Gallery, other: Gallery
) -> None:
    settle(gallery)
    old = other.get_collection("staff")
    draft = open_draft(other.store, "staff", "reembedded", old.binding)
    other.enroll(draft, [newcomer("new", PEOPLE[:1]), newcomer("p1", PEOPLE[1:2])])
    with other.store.writing() as connection:
        replace_with_draft(connection, old, draft)
    assert look(gallery) == (2, ["new"])
