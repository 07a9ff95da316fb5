"""How far Milvus was fed is replaced by whoever read it last, and faces are read by key for it."""

from dataclasses import replace

import numpy as np

from sameface.model.store.records import Collection, Feed
from sameface.model.store.store import Store
from tests.model.people import newcomer, random_units
from tests.model.store.staff import BINDING, DIMENSION


def test_a_feed_is_replaced_only_as_long_as_it_is_what_was_read(store: Store, staff: Collection) -> None:
    assert store.feeds.get(staff) == Feed(staff.key)
    feed = store.feeds.add(staff)
    first, second = Feed(staff.key, 5, -7), Feed(staff.key, 6, -8)
    assert store.feeds.advance(feed, first)
    assert not store.feeds.advance(feed, second)
    assert store.feeds.get(staff) == first
    assert store.feeds.advance(first, second)
    assert store.feeds.all_of(staff.identity) == {staff.key: second}
    assert store.feeds.all_of("another") == {}


def test_a_feed_outlives_its_collection_until_it_is_removed(store: Store, staff: Collection) -> None:
    feed = store.feeds.add(staff)
    store.collections.delete("staff")
    assert store.feeds.all_of(staff.identity) == {staff.key: feed}
    store.feeds.remove(feed)
    assert store.feeds.all_of(staff.identity) == {}


def test_feeds_of_a_recogniser_that_no_collection_has_are_deleted(store: Store, staff: Collection) -> None:
    feed = store.feeds.add(staff)
    store.feeds.add(replace(staff, key=77, identity="earlier"))
    assert store.feeds.abandoned() == ["earlier"]
    for identity in ("earlier", staff.identity):
        store.feeds.remove_abandoned(identity)
    assert store.feeds.abandoned() == []
    assert store.feeds.all_of(staff.identity) == {staff.key: feed}
    assert store.feeds.all_of("earlier") == {}


def test_faces_by_key_are_those_of_the_collection_that_are_still_there(
    store: Store, staff: Collection
) -> None:
    guests, _ = store.collections.create("guests", BINDING)
    people = random_units(3, DIMENSION)
    store.people.enroll(staff, [newcomer("ada", people[:1]), newcomer("bob", people[1:2])])
    store.people.enroll(guests, [newcomer("eve", people[2:])])
    store.people.delete(staff, "bob")
    found = store.changes.find_faces(staff, np.array([3, 2, 1, 99]))
    assert found.faces.tolist() == [1]
    assert np.array_equal(found.embeddings, people[:1])
    own = store.changes.faces_of(staff, found.people)
    assert own == found
