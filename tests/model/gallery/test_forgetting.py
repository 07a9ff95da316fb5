"""The embedding of a deleted face leaves the disk within a stated time, whoever deleted it."""

import shutil
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from sameface.model.bundles.bundle import Bundle, load_bundle
from sameface.model.gallery.gallery import Gallery
from sameface.model.gallery.index.faiss import candidates as candidates_module
from sameface.model.gallery.index.faiss import collection_indexes as indexes_module
from sameface.model.gallery.index.faiss import loaded_index as loaded_module
from sameface.model.gallery.index.faiss.collection_indexes import open_indexes
from sameface.model.gallery.roster import Roster
from sameface.model.store.databases import sqlite_database
from sameface.model.store.records import Collection
from sameface.model.store.store import Store
from tests.conftest import wait_for
from tests.model.gallery.index.faiss.codes import blank_of, code_of
from tests.model.people import newcomer, people_like
from tests.networks import DIMENSION

pytestmark = pytest.mark.sqlite  # they look into its file

PEOPLE = people_like(300, 1, DIMENSION)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three hundred faces are many: they are searched by codes, and saved."""
    monkeypatch.setattr(indexes_module, "FORGET_SECONDS", 0.1)
    monkeypatch.setattr(sqlite_database, "SCRUB_SECONDS", 0.1)
    monkeypatch.setattr(loaded_module, "SAVE_CHANGES", 20)
    monkeypatch.setattr(candidates_module, "EXACT_ROWS", 200)


@pytest.fixture(scope="module")
def bundle(data: Path) -> Bundle:
    return load_bundle(data / "models" / "recogniser")


@pytest.fixture
def path(tmp_path: Path, bundle: Bundle) -> Path:
    """A closed gallery of 300 people whose index has a snapshot."""
    with closing(Gallery(tmp_path / "home" / "gallery.db", bundle)) as gallery:
        staff, _ = gallery.create_collection("staff")
        gallery.enroll(staff, [newcomer(f"p{number}", faces) for number, faces in enumerate(PEOPLE)])
        gallery.indexes.renew(gallery.get_collection("staff"))
    return tmp_path / "home" / "gallery.db"


@pytest.fixture
def server(path: Path, bundle: Bundle) -> Iterator[Gallery]:
    """The gallery as a server has it."""
    with closing(Gallery(path, bundle)) as gallery:
        gallery.load()
        yield gallery


def is_on_disk(path: Path, number: int) -> bool:
    """Whether the embedding of a person is in a file."""
    for file in path.parent.rglob("*"):
        with suppress(FileNotFoundError, IsADirectoryError):  # one that was deleted meanwhile holds nobody
            if PEOPLE[number].tobytes() in file.read_bytes():
                return True
    return False


def snapshot_of(gallery: Roster, collection: Collection) -> Path:
    return open_indexes(gallery.store).path_of(collection)


def test_who_is_deleted_leaves_the_disk_although_nobody_searches(path: Path, server: Gallery) -> None:
    staff = server.get_collection("staff")
    codes = server.indexes.follow(staff).faiss_index
    assert code_of(codes, 7) != blank_of(codes)
    assert is_on_disk(path, 7)
    server.forget_person(staff, "p7")
    server.forget_face(staff, "p8", "p8-0")
    wait_for(lambda: not is_on_disk(path, 7) and not is_on_disk(path, 8))
    assert is_on_disk(path, 9)
    held = open_indexes(server.store).load(server.get_collection("staff"))
    assert code_of(held.index.faiss_index, 7) == blank_of(codes)
    assert (held.saved, held.index.size) == (302, 298)
    assert held.index.search(PEOPLE[9], 1).faces.tolist() == [[10]]


def test_what_another_process_deletes_is_written_anew_by_one_that_has_the_index(
    path: Path, server: Gallery, bundle: Bundle
) -> None:
    staff = server.get_collection("staff")
    for number, deleter in enumerate((Roster(path), Gallery(path, bundle))):
        with closing(deleter):
            deleter.forget_person(staff, f"p{number}")
        wait_for(lambda number=number: not is_on_disk(path, number))
        wait_for(snapshot_of(server, staff).exists)
    assert is_on_disk(path, 9)


def test_a_command_leaves_nothing_on_the_disk_although_no_server_runs(path: Path) -> None:
    with closing(Roster(path)) as command:
        staff = command.get_collection("staff")
        command.forget_person(staff, "p7")
    wait_for(lambda: not is_on_disk(path, 7))
    with closing(Roster(path)) as command:
        command.delete_collection("staff")
    assert not any(is_on_disk(path, number) for number in range(0, 300, 50))


def test_who_was_deleted_before_a_kill_leaves_the_disk_after_the_next_start(
    path: Path, bundle: Bundle, tmp_path: Path
) -> None:
    with closing(Store(path)) as store:
        store.people.delete(store.collections.get("staff"), "p7")
        shutil.copytree(path.parent, tmp_path / "killed")  # log, snapshot and all
    (tmp_path / "killed" / "indexes" / "1.index.4711.part").write_bytes(PEOPLE[8].tobytes())
    left = tmp_path / "killed" / "gallery.db"
    assert (tmp_path / "killed" / "gallery.db-wal").stat().st_size
    assert is_on_disk(left, 7)
    with closing(Gallery(left, bundle)) as gallery:
        gallery.load()
        wait_for(lambda: not is_on_disk(left, 7))
        wait_for(lambda: not list(left.parent.rglob("*.part")))


def test_a_snapshot_that_cannot_be_written_anew_is_deleted(
    path: Path, server: Gallery, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> int:
        raise OSError("the disk is full")

    monkeypatch.setattr(indexes_module, "save_snapshot", fail)
    staff = server.get_collection("staff")
    server.forget_person(staff, "p7")
    wait_for(lambda: not is_on_disk(path, 7))
    assert not snapshot_of(server, staff).exists()
    assert "the disk is full" in caplog.text


def test_the_snapshot_of_an_index_that_is_not_here_is_deleted(path: Path, server: Gallery) -> None:
    staff = server.get_collection("staff")
    server.indexes._held.clear()  # as in a worker that was never asked about it
    server.forget_person(staff, "p7")
    wait_for(lambda: not snapshot_of(server, staff).exists())
    wait_for(lambda: not is_on_disk(path, 7))


def test_a_snapshot_is_left_alone_while_nobody_is_deleted(path: Path, server: Gallery) -> None:
    staff = server.get_collection("staff")
    before = snapshot_of(server, staff).stat().st_mtime_ns
    server.enroll(staff, [newcomer("late", people_like(1, 2, DIMENSION, 99)[0])])
    server.indexes.forget_faces()
    assert snapshot_of(server, staff).stat().st_mtime_ns == before
    assert is_on_disk(path, 7)
