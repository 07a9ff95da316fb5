"""The feeder sends all in bounded rounds, stops without its lock, and mends what late requests have done."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from sameface.model.gallery.gallery import Gallery
from sameface.model.gallery.index.milvus import feeder as feeder_module
from sameface.model.gallery.index.milvus.faces_in_milvus import FacesInMilvus, name_collection
from sameface.model.gallery.index.milvus.feeder import Feeder
from sameface.model.gallery.index.milvus.sent import FedElsewhere
from sameface.model.store import changes as changes_module
from sameface.model.store.records import Collection, FaceBlock
from tests.conftest import wait_for
from tests.milvus_server import wait_until_fed
from tests.model.gallery.index.milvus.searches import find_patiently
from tests.model.people import newcomer, random_units
from tests.networks import DIMENSION
from tests.postgres_server import connect_to


def enroll_many(gallery: Gallery, collection: Collection, count: int) -> FaceBlock:
    """So many people with one face each; their faces as the store has them."""
    people = random_units(count, DIMENSION, collection.key)
    gallery.enroll(collection, [newcomer(f"p{n}", values[None]) for n, values in enumerate(people)])
    return FaceBlock.join(list(gallery.store.changes.all_faces(collection)))


def feeder_beside(gallery: Gallery) -> Feeder:
    """Another feeder; the gallery's own is stopped."""
    gallery.indexes.feeder.close()
    return Feeder(gallery.store, gallery.indexes.faces, gallery.bundle.identity)


@pytest.mark.parametrize("rounds", [0, 1])
def test_a_feeder_that_has_lost_its_lock_records_nothing(
    gallery: Gallery, staff: Collection, monkeypatch: pytest.MonkeyPatch, rounds: int
) -> None:
    """Either before a round, or while it was in a call of Milvus's."""
    monkeypatch.setattr(feeder_module, "BOUND_SECONDS", 0)
    enroll_many(gallery, staff, 3)
    feeder = feeder_beside(gallery)
    held = iter([True] * rounds)

    @contextmanager
    def locked(_: str) -> Iterator[Callable[[], bool]]:
        yield lambda: next(held, False)

    monkeypatch.setattr(gallery.store, "locked", locked)
    until = threading.Timer(5, feeder.close)
    until.start()
    with pytest.raises(FedElsewhere):
        feeder.lead()
    until.cancel()
    assert gallery.store.feeds.get(staff).mark == 0


def test_a_late_delete_of_an_earlier_feeder_is_noticed_and_all_is_sent_again(
    gallery: Gallery, staff: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeder_module, "SWEEP_SECONDS", 0.1)
    gallery.load()
    block = enroll_many(gallery, staff, 3)
    wait_until_fed(gallery, "staff")
    faces = gallery.indexes.faces
    faces.delete(block.faces[:2].tolist())
    wait_for(lambda: faces.count(staff.key) == 3)
    wait_until_fed(gallery, "staff")
    assert find_patiently(gallery, *block.embeddings) == ["p0", "p1", "p2"]


def test_what_sending_again_does_not_mend_is_sent_again_once(
    gallery: Gallery, staff: Collection, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A counter of the store that is wrong is for `gallery check` to find."""
    monkeypatch.setattr(feeder_module, "SWEEP_SECONDS", 0)
    block = enroll_many(gallery, staff, 3)
    with connect_to(gallery.place) as connection, connection:
        connection.execute("UPDATE collections SET faces = faces + 1")
    faces, counted = gallery.indexes.faces, []
    count = faces.count
    monkeypatch.setattr(faces, "count", lambda collection: counted.append(collection) or count(collection))
    gallery.load()
    wait_for(lambda: len(counted) > 5)
    assert caplog.text.count("is sent anew") == 1
    assert find_patiently(gallery, *block.embeddings) == ["p0", "p1", "p2"]


def test_all_faces_are_sent_in_rounds_between_which_other_collections_have_their_turn(
    gallery: Gallery, staff: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes_module, "ROWS_AT_ONCE", 10)
    monkeypatch.setattr(feeder_module, "FEED_ROWS", 20)
    guests, _ = gallery.create_collection("guests")
    enroll_many(gallery, staff, 50)
    enroll_many(gallery, guests, 5)
    feeder, faces = feeder_beside(gallery), gallery.indexes.faces
    feeder._leads = lambda: True
    sent = []
    for _ in range(3):
        more = feeder.feed()
        sent.append((faces.count(staff.key), faces.count(guests.key), more))
    assert sent == [(20, 5, True), (40, 5, True), (50, 5, False)]


def test_a_collection_that_milvus_loses_while_it_is_sent_is_begun_again(
    gallery: Gallery, staff: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes_module, "ROWS_AT_ONCE", 10)
    monkeypatch.setattr(feeder_module, "FEED_ROWS", 20)
    enroll_many(gallery, staff, 30)
    feeder, faces = feeder_beside(gallery), gallery.indexes.faces
    feeder._leads = lambda: True
    assert feeder.feed()
    faces.drop(faces.name)
    feeder._verified = 0.0
    assert feeder.feed()
    assert not feeder.feed()
    assert faces.count(staff.key) == 30


def test_what_arrives_of_a_collection_after_it_was_deleted_does_not_stay(
    gallery: Gallery, staff: Collection, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    block = enroll_many(gallery, staff, 3)
    gallery.load()
    wait_until_fed(gallery, "staff")
    faces = gallery.indexes.faces
    gallery.delete_collection("staff")
    wait_for(lambda: faces.count(staff.key) == 0)
    faces.add(staff.key, block)
    monkeypatch.setattr(feeder_module, "LATE_SECONDS", 0)
    wait_for(lambda: not gallery.store.feeds.all_of(gallery.bundle.identity))
    assert faces.count(staff.key) == 0
    assert "sent anew" not in caplog.text


def test_what_was_fed_for_a_recogniser_that_no_collection_has_is_deleted(
    gallery: Gallery, staff: Collection
) -> None:
    """As after `gallery reembed`, when nobody runs the earlier recogniser any more."""
    old = replace(staff, key=999, identity="0123456789abcdef" * 4)
    gallery.store.feeds.add(old)
    earlier = FacesInMilvus(gallery.milvus, name_collection(gallery.store.id, old.identity), DIMENSION)
    earlier.create()
    assert earlier.exists()
    gallery.load()
    wait_for(lambda: not gallery.store.feeds.abandoned())
    assert not earlier.exists()
    enroll_many(gallery, staff, 1)
    wait_until_fed(gallery, "staff")
    earlier.close()
