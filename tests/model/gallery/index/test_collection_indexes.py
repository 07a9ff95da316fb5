"""The indexes of a store: from snapshots that are believed only if they are sound, tended beside searches."""

import logging
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from sameface.model.bundles.bundle import load_bundle
from sameface.model.faces import Embedding
from sameface.model.files import exclusive_lock
from sameface.model.gallery.gallery import Gallery
from sameface.model.gallery.index import collection_indexes as indexes_module
from sameface.model.gallery.index import face_index as index_module
from sameface.model.gallery.index import faiss_search as candidates_module
from sameface.model.gallery.index.collection_indexes import CollectionIndexes
from sameface.model.gallery.index.face_index import FaceIndex
from sameface.model.gallery.index.snapshot import save_snapshot
from sameface.model.store.records import Binding, Collection
from sameface.model.store.store import Store
from tests.model.people import newcomer, people_like, random_units

DIMENSION = 16
BINDING = Binding(bundle="tiny", identity="abc", dimension=DIMENSION)


@pytest.fixture(autouse=True)
def _small_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every gallery of more than 200 faces is searched in cells."""
    monkeypatch.setattr(candidates_module, "EXACT_ROWS", 200)
    monkeypatch.setattr(index_module, "DEAD_ROWS", 10)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(tmp_path / "gallery.db")) as store:
        yield store


@pytest.fixture
def staff(store: Store, monkeypatch: pytest.MonkeyPatch) -> Collection:
    """A collection of 300 people, large enough for cells and snapshots."""
    monkeypatch.setattr(indexes_module, "SAVE_CHANGES", 20)
    staff, _ = store.collections.create("staff", BINDING)
    embeddings = people_like(300, 1, DIMENSION)
    store.people.enroll(staff, [newcomer(f"p{number}", faces) for number, faces in enumerate(embeddings)])
    return store.collections.get("staff")


def tended(store: Store, folder: Path, collection: Collection) -> FaceIndex:
    """The index after its upkeep, closed and saved."""
    with closing(CollectionIndexes(store, folder, "cpu")) as indexes:
        return indexes.follow(collection)


def test_a_restart_takes_the_snapshot_and_replays_the_rest(
    store: Store, staff: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(CollectionIndexes(store, tmp_path / "indexes", "cpu")) as indexes:
        indexes.follow(staff)
        indexes._upkeep.submit(lambda: None).result()
        assert indexes.kind_of(staff) == "ivf"
    store.people.delete(staff, "p0")
    store.people.enroll(staff, [newcomer("late", random_units(1, DIMENSION, 99))])
    asked = []
    read = store.changes.since
    monkeypatch.setattr(store.changes, "since", lambda *what: asked.append(what[1]) or read(*what))
    index = tended(store, tmp_path / "indexes", store.collections.get("staff"))
    assert asked == [300]
    assert (index.kind, index.size, index.sequence) == ("ivf", 300, 302)
    assert len(index.search(random_units(1, DIMENSION, 99), 1)[0]) == 1
    assert all(hit.face != 1 for hit in index.search(people_like(300, 1, DIMENSION)[0], 300)[0])


def damage(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        (lambda path: damage(path, 2000), "checksum"),
        (lambda path: damage(path, 1024 + 300 * 17 + 40), "checksum"),
        (lambda path: damage(path, -1), "checksum"),
        (lambda path: damage(path, 0), "header"),
        (lambda path: path.write_bytes(path.read_bytes()[:5000]), "checksum"),
        (
            lambda path: path.write_bytes(path.read_bytes().replace(b'"version": 2', b'"version": 9')),
            "version",
        ),
        (
            lambda path: path.write_bytes(path.read_bytes().replace(b'"rows": 300', b'"rows": 200')),
            "checksum",
        ),
        (lambda path: path.write_bytes(path.read_bytes().replace(b'"sequence"', b'"sequencf"')), "checksum"),
        (lambda path: path.write_bytes(b"[]" + path.read_bytes()[2:]), "header"),
        (lambda path: path.write_bytes(b"[]" + b" " * 5000), "header"),
        (lambda path: path.write_bytes(b""), "header"),
    ],
)
def test_a_damaged_snapshot_is_noticed_said_and_made_again(
    store: Store, staff: Collection, tmp_path: Path, caplog: pytest.LogCaptureFixture, what, reason: str
) -> None:
    tended(store, tmp_path / "indexes", staff)
    [path] = (tmp_path / "indexes").glob("*.index")
    what(path)
    with caplog.at_level(logging.WARNING):
        index = tended(store, tmp_path / "indexes", staff)
    assert reason in caplog.text
    assert index.size == 300
    caplog.clear()
    tended(store, tmp_path / "indexes", staff)
    assert caplog.text == ""


def test_a_snapshot_of_another_store_is_not_taken(
    store: Store, staff: Collection, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tended(store, tmp_path / "indexes", staff)
    with closing(Store(tmp_path / "other.db")) as other:
        theirs, _ = other.collections.create("staff", BINDING)
        assert theirs.key == staff.key
        with caplog.at_level(logging.WARNING):
            index = tended(other, tmp_path / "indexes", theirs)
    assert "another store" in caplog.text
    assert index.size == 0


@pytest.mark.parametrize("written_since", [0, 40])
def test_a_backup_that_was_put_back_is_noticed(
    store: Store, staff: Collection, tmp_path: Path, caplog: pytest.LogCaptureFixture, written_since: int
) -> None:
    with closing(sqlite3.connect(tmp_path / "gallery.db")) as connection:
        connection.execute("VACUUM INTO ?", [str(tmp_path / "backup.db")])
    store.people.enroll(staff, [newcomer(f"new{n}", random_units(1, DIMENSION, n)) for n in range(30)])
    tended(store, tmp_path / "indexes", store.collections.get("staff"))
    with closing(Store(tmp_path / "backup.db")) as backup:
        others = [newcomer(f"x{n}", random_units(1, DIMENSION, 100 + n)) for n in range(written_since)]
        backup.people.enroll(staff, others) if others else None
        with caplog.at_level(logging.WARNING):
            index = tended(backup, tmp_path / "indexes", backup.collections.get("staff"))
        assert ("ahead of the store" if not written_since else "not those of the store") in caplog.text
        assert index.size == 300 + written_since


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


def test_who_was_deleted_is_not_in_the_snapshot_of_a_server_that_stopped(
    store: Store, staff: Collection, tmp_path: Path
) -> None:
    tended(store, tmp_path / "indexes", staff)
    [path] = (tmp_path / "indexes").glob("*.index")
    embedding = people_like(300, 1, DIMENSION)[7, 0].tobytes()
    assert embedding in path.read_bytes()
    with closing(CollectionIndexes(store, tmp_path / "indexes", "cpu")) as indexes:
        indexes.follow(staff)
        store.people.delete(staff, "p7")  # and no search after it
    assert embedding not in path.read_bytes()


def test_who_was_deleted_while_a_snapshot_was_written_is_not_in_the_next(
    store: Store, staff: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedding = people_like(300, 1, DIMENSION)[7, 0].tobytes()
    folder = tmp_path / "indexes"
    with closing(CollectionIndexes(store, folder, "cpu")) as indexes:

        def delete_after(*what) -> int:
            sequence = save_snapshot(*what)
            store.people.delete(staff, "p7")
            indexes.follow(store.collections.get("staff"))
            return sequence

        held = indexes._held[staff.key] = indexes.build(staff)
        with monkeypatch.context() as patch:
            patch.setattr(indexes_module, "save_snapshot", delete_after)
            indexes.save(held)
        [path] = folder.glob("*.index")
        assert embedding in path.read_bytes()
        assert (held.saved, held.unsaved) == (300, 1)
    assert embedding not in path.read_bytes()


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
    gallery = Gallery(store.path, load_bundle(data / "models" / "recogniser"))
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


def test_a_snapshot_that_another_process_wrote_just_now_is_not_taken_for_a_broken_one(
    store: Store, staff: Collection, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store.people.enroll(staff, [newcomer(f"new{n}", random_units(1, DIMENSION, n)) for n in range(30)])
    tended(store, tmp_path / "indexes", store.collections.get("staff"))
    with caplog.at_level(logging.WARNING):
        index = tended(store, tmp_path / "indexes", staff)  # as it was read before
    assert (index.sequence, caplog.text) == (330, "")


def test_more_people_than_there_are_do_not_make_a_search_compare_everything(
    store: Store, staff: Collection, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(
        FaceIndex, "search", lambda _, probes, limit: asked.append(limit) or [[] for _ in probes]
    )
    gallery = Gallery(store.path, load_bundle(data / "models" / "recogniser"))
    with closing(gallery):
        gallery.search(staff, [Embedding(random_units(1, DIMENSION)[0], "abc")], 1000)
    assert asked == [300]
