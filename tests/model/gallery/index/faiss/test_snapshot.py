"""A snapshot is taken after a restart, and believed only if it is sound and of this store."""

import json
import logging
import sqlite3
from contextlib import closing
from pathlib import Path

import faiss
import pytest

from sameface.model.gallery.index.faiss import collection_indexes as indexes_module
from sameface.model.gallery.index.faiss.collection_indexes import CollectionIndexes
from sameface.model.gallery.index.faiss.snapshot import save_snapshot
from sameface.model.store.records import Collection
from sameface.model.store.store import Store
from tests.model.gallery.index.faiss.staff import BINDING, DIMENSION, tended
from tests.model.people import newcomer, people_like, random_units


def test_a_restart_takes_the_snapshot_and_replays_the_rest(
    store: Store, staff: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(CollectionIndexes(store, tmp_path / "indexes", "cpu")) as indexes:
        indexes.follow(staff)
        indexes._upkeep.submit(lambda: None).result()
        assert indexes.kind_of(staff) == "codes"
    store.people.delete(staff, "p0")
    store.people.enroll(staff, [newcomer("late", random_units(1, DIMENSION, 99))])
    asked = []
    read = store.changes.since
    monkeypatch.setattr(store.changes, "since", lambda *what: asked.append(what[1]) or read(*what))
    index = tended(store, tmp_path / "indexes", store.collections.get("staff"))
    assert asked == [300]
    assert (index.kind, index.size, index.sequence) == ("codes", 300, 302)
    assert (index.search(random_units(1, DIMENSION, 99), 1).faces > 0).all()
    assert 1 not in index.search(people_like(300, 1, DIMENSION)[0], 300).faces


def test_a_snapshot_with_the_cells_of_0_1_0_is_opened_without_them_and_gets_codes(
    store: Store, staff: Collection, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch
) -> None:
    with closing(CollectionIndexes(store, tmp_path / "indexes", "cpu")) as indexes:
        held = indexes.build(staff)
        cells = faiss.index_factory(DIMENSION, "IVF4,SQfp16", faiss.METRIC_INNER_PRODUCT)
        cells.train(held.index.columns.embeddings)
        cells.add(held.index.columns.embeddings)
        held.index.adopt(held.index.columns, "codes", cells, held.index.sequence)
        dumps = json.dumps
        with monkeypatch.context() as patch:  # the header of 0.1.0
            patch.setattr(json, "dumps", lambda header: dumps(header).replace('"codes"', '"ivf"'))
            indexes.save(held)
    [path] = (tmp_path / "indexes").glob("*.index")
    assert b'"kind": "ivf"' in path.read_bytes()[:1024]
    index = CollectionIndexes(store, path.parent, "cpu").load(staff).index
    assert (index.kind, index.size, index.sequence) == ("exact", 300, 300)
    assert index.needs_rebuilding
    index.rebuild()
    assert index.kind == "codes"
    assert caplog.text == ""


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


@pytest.mark.sqlite
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


def test_a_snapshot_that_another_process_wrote_just_now_is_not_taken_for_a_broken_one(
    store: Store, staff: Collection, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store.people.enroll(staff, [newcomer(f"new{n}", random_units(1, DIMENSION, n)) for n in range(30)])
    tended(store, tmp_path / "indexes", store.collections.get("staff"))
    with caplog.at_level(logging.WARNING):
        index = tended(store, tmp_path / "indexes", staff)  # as it was read before
    assert (index.sequence, caplog.text) == (330, "")
