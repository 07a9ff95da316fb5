"""The indexes of a store are saved beside searches, by several processes, and whatever fails."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from sameface.model.bundles.bundle import load_bundle
from sameface.model.files import exclusive_lock
from sameface.model.gallery.gallery import Gallery
from sameface.model.gallery.index.faiss import collection_indexes as indexes_module
from sameface.model.gallery.index.faiss.collection_indexes import CollectionIndexes
from sameface.model.gallery.index.faiss.face_index import FaceIndex
from sameface.model.gallery.index.faiss.snapshot import save_snapshot
from sameface.model.gallery.index.hits import Hits
from sameface.model.store.records import Collection
from sameface.model.store.store import Store
from tests.model.gallery.index.faiss.staff import BINDING, DIMENSION, tended
from tests.model.people import newcomer, random_units


def test_the_snapshot_of_a_deleted_collection_is_deleted(
    store: Store, staff: Collection, tmp_path: Path
) -> None:
    with closing(CollectionIndexes(store, tmp_path / "indexes", "cpu")) as indexes:
        indexes.follow(staff)
        indexes._upkeep.submit(lambda: None).result()
        assert list((tmp_path / "indexes").glob("*.index"))
        store.collections.delete("staff")
        indexes.forget_deleted()
        assert not list((tmp_path / "indexes").glob("*.index"))
        assert not indexes._held


def test_a_process_that_is_behind_does_not_write_over_a_newer_snapshot(
    store: Store, staff: Collection, tmp_path: Path
) -> None:
    behind, ahead = (CollectionIndexes(store, tmp_path / "indexes", "cpu") for _ in range(2))
    with closing(behind), closing(ahead):
        behind.follow(staff)
        store.people.enroll(staff, [newcomer(f"new{n}", random_units(1, DIMENSION, n)) for n in range(30)])
        ahead.follow(store.collections.get("staff"))
        ahead._upkeep.submit(lambda: None).result()
    [path] = (tmp_path / "indexes").glob("*.index")
    assert b'"sequence": 330' in path.read_bytes()[:1024]


def test_a_snapshot_that_failed_is_tried_when_much_has_changed_and_at_the_end(
    store: Store, staff: Collection, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch
) -> None:
    tries = []

    def fail(index: FaceIndex, *_) -> int:
        tries.append(index.sequence)
        raise OSError("the disk is full")

    folder = tmp_path / "indexes"
    with closing(CollectionIndexes(store, folder, "cpu")) as indexes:
        with monkeypatch.context() as patch:
            patch.setattr(indexes_module, "save_snapshot", fail)
            for newcomers in (0, 1, 40):
                others = [
                    newcomer(f"{newcomers}-{n}", random_units(1, DIMENSION, n)) for n in range(newcomers)
                ]
                store.people.enroll(staff, others) if others else None
                indexes.follow(store.collections.get("staff"))
                indexes._upkeep.submit(lambda: None).result()
        assert tries == [300, 341]
        assert "cannot be rebuilt or saved yet" in caplog.text
        assert indexes._held[staff.key].saved == 0
        assert not list(folder.glob("*.index"))
    [path] = folder.glob("*.index")
    assert b'"sequence": 341' in path.read_bytes()[:1024]


def test_one_index_that_cannot_be_saved_at_the_end_stops_neither_the_others_nor_the_store(
    store: Store, staff: Collection, data: Path, caplog: pytest.LogCaptureFixture, monkeypatch
) -> None:
    others = [store.collections.create(name, BINDING)[0] for name in ("full", "guests")]
    gallery = Gallery(store.place, load_bundle(data / "models" / "recogniser"))
    for collection in (staff, *others):
        gallery.indexes.follow(collection)
    for collection in (staff, *others):
        people = [newcomer(f"{collection.name}-{n}", random_units(1, DIMENSION, n)) for n in range(30)]
        store.people.enroll(collection, people)
    read = gallery.store.changes.since

    def fail_for_staff(collection: Collection, sequence: int):
        return read(collection, sequence) if collection.name != "staff" else 1 / 0

    def fail_for_full(index: FaceIndex, path: Path, owner: dict) -> int:
        return save_snapshot(index, path, owner) if owner["collection"] != others[0].key else 1 / 0

    closed = []
    monkeypatch.setattr(gallery.store.changes, "since", fail_for_staff)
    monkeypatch.setattr(indexes_module, "save_snapshot", fail_for_full)
    monkeypatch.setattr(gallery.store, "close", lambda close=gallery.store.close: closed.append(close()))
    gallery.close()
    assert "index of staff cannot be saved" in caplog.text
    assert "index of full cannot be saved" in caplog.text
    assert gallery.indexes.path_of(others[1]).exists()
    assert closed == [None]


def test_a_snapshot_is_renewed_also_if_another_process_is_writing_one(
    store: Store, staff: Collection, tmp_path: Path
) -> None:
    with (
        closing(CollectionIndexes(store, tmp_path / "indexes", "cpu")) as indexes,
        ThreadPoolExecutor(1) as beside,
    ):
        with exclusive_lock(indexes.path_of(staff).with_suffix(".lock")):
            renewed = beside.submit(indexes.renew, staff)
            time.sleep(0.3)
            assert not renewed.done()
        renewed.result()
        assert indexes.path_of(staff).exists()


def test_a_collection_that_another_process_deleted_is_not_written_again(
    store: Store, staff: Collection, tmp_path: Path
) -> None:
    folder = tmp_path / "indexes"
    with closing(CollectionIndexes(store, folder, "cpu")) as indexes:
        held = indexes._held[staff.key] = indexes.build(staff)
        store.collections.delete("staff")
        indexes.save(held)
        assert not list(folder.glob("*.index"))
    assert not list(folder.glob("*.index"))


def test_what_a_killed_process_was_writing_is_removed(
    store: Store, staff: Collection, tmp_path: Path
) -> None:
    left = tmp_path / "indexes" / f"{staff.key}.index.4711.part"
    left.parent.mkdir()
    left.write_bytes(b"embeddings")
    (left.parent / "99.index.4711.part").write_bytes(b"of a collection that is gone")
    tended(store, left.parent, staff)
    assert not list(left.parent.glob("*.part"))


def test_more_people_than_there_are_do_not_make_a_search_compare_everything(
    store: Store, staff: Collection, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(
        FaceIndex,
        "search",
        lambda _, probes, limit, **__: asked.append(limit) or Hits.none(len(probes), limit),
    )
    gallery = Gallery(store.place, load_bundle(data / "models" / "recogniser"))
    with closing(gallery):
        gallery.search(staff, random_units(1, DIMENSION), 1000)
    assert asked == [300]
