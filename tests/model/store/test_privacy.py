"""What is deleted leaves the disk, and nobody else on the machine may read what is kept."""

import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from sameface.model.bundles.bundle import Bundle, load_bundle, save_bundle
from sameface.model.files import exclusive_lock
from sameface.model.gallery.index.faiss.collection_indexes import open_indexes
from sameface.model.runtime.prepare_graph import prepare_graph
from sameface.model.store.databases import sqlite_database
from sameface.model.store.records import Binding
from sameface.model.store.store import Store
from tests.conftest import wait_for
from tests.model.people import newcomer, random_units

pytestmark = pytest.mark.sqlite  # they look into its file

BINDING = Binding(bundle="tiny", identity="abc", dimension=8)


def found_in(folder: Path, content: bytes) -> list[str]:
    """The names of the files that hold these bytes."""
    return [path.name for path in folder.rglob("*") if path.is_file() and content in path.read_bytes()]


def test_a_deleted_person_leaves_the_log_too(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(sqlite_database, "SCRUB_SECONDS", 0.1)
    embeddings = random_units(1, 8)
    with closing(Store(tmp_path / "gallery.db")) as store:
        staff, _ = store.collections.create("staff", BINDING)
        store.people.enroll(staff, [newcomer("ada", embeddings, name="Ada Lovelace")])
        kept = embeddings.astype("<f4").tobytes()
        assert found_in(tmp_path, b"Ada Lovelace")
        assert found_in(tmp_path, kept)
        store.people.delete(staff, "ada")
        wait_for(lambda: not found_in(tmp_path, b"Ada Lovelace"), 10)
        assert not found_in(tmp_path, kept)


def test_a_log_that_is_being_read_is_emptied_later(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(sqlite_database, "SCRUB_SECONDS", 0.1)
    with closing(Store(tmp_path / "gallery.db")) as store, closing(Store(tmp_path / "gallery.db")) as reader:
        staff, _ = store.collections.create("staff", BINDING)
        store.people.enroll(staff, [newcomer("ada", random_units(1, 8), name="Ada Lovelace")])
        with reader.frozen():
            reader.collections.get("staff")
            store.people.delete(staff, "ada")
            assert found_in(tmp_path, b"Ada Lovelace")
        wait_for(lambda: not found_in(tmp_path, b"Ada Lovelace"), 10)


def test_a_process_that_deletes_and_ends_empties_the_log_that_another_keeps(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "gallery.db")) as server:
        staff, _ = server.collections.create("staff", BINDING)
        server.people.enroll(staff, [newcomer("ada", random_units(1, 8), name="Ada Lovelace")])
        with closing(Store(tmp_path / "gallery.db")) as command:
            command.people.delete(staff, "ada")
        assert (tmp_path / "gallery.db-wal").exists()
        assert not found_in(tmp_path, b"Ada Lovelace")


def test_only_the_owner_may_read_database_log_and_snapshots(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with closing(Store(home / "gallery.db")) as store:
        staff, _ = store.collections.create("staff", BINDING)
        store.people.enroll(staff, [newcomer("ada", random_units(3, 8))])
        with closing(open_indexes(store)) as indexes:
            indexes.renew(store.collections.get("staff"))
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (home, *home.rglob("*"))}
    assert (modes["home"], modes["indexes"], modes["1.index"]) == (0o700, 0o700, 0o600)
    assert {modes[name] for name in modes if name.startswith("gallery.db")} == {0o600}


def open_store(data: Path, _: Bundle) -> None:
    Store(data / "gallery.db").close()


def take_lock(data: Path, _: Bundle) -> None:
    with exclusive_lock(data / "gallery.lock"):
        pass


def adopt_bundle(data: Path, bundle: Bundle) -> None:
    save_bundle(bundle.contract, bundle.path, data / "models" / "tiny")


def prepare(data: Path, bundle: Bundle) -> None:
    prepare_graph(bundle, "cpu", data / "cache")


@pytest.mark.parametrize("first", [open_store, take_lock, adopt_bundle, prepare])
def test_all_folders_that_are_made_for_data_are_private_whatever_comes_first(
    tmp_path: Path, data: Path, first: Callable[[Path, Bundle], None]
) -> None:
    first(tmp_path / "home" / "data", load_bundle(data / "models" / "recogniser"))
    made = [path for path in (tmp_path / "home").rglob("*") if path.is_dir()]
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in (tmp_path / "home", *made)} == {0o700}


def test_a_database_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    (tmp_path / "gallery.db").touch(mode=0o644)
    Store(tmp_path / "gallery.db").close()
    assert stat.S_IMODE((tmp_path / "gallery.db").stat().st_mode) == 0o600
