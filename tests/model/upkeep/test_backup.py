"""A backup has one moment of everything, and a restore brings all of it back or changes nothing."""

import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from sameface.model.errors import SamefaceError, StoreRefused
from sameface.model.files import exclusive_lock
from sameface.model.gallery.index.faiss.collection_indexes import open_indexes
from sameface.model.store.databases.migrations import VERSION as STORE_VERSION
from sameface.model.store.databases.sqlite_database import lock_of
from sameface.model.store.records import Collection
from sameface.model.store.store import Store
from sameface.model.upkeep.backup import back_up, restore
from sameface.model.upkeep.backup_file import MANIFEST_BYTES, VERSION, Manifest, hash_backup, read_manifest
from sameface.model.upkeep.check_gallery import check_gallery
from sameface.model.upkeep.errors import BackupRefused
from tests.model.people import everybody, newcomer, random_units
from tests.model.upkeep.archives import DIMENSION
from tests.model.upkeep.galleries import make_gallery, people_in

pytestmark = pytest.mark.sqlite  # PostgreSQL has tools of its own


@pytest.fixture
def backup(store: Store, staff: Collection, tmp_path: Path) -> Path:
    assert staff.people
    back_up(store, tmp_path / "monday.backup")
    return tmp_path / "monday.backup"


def dump(gallery: Path) -> list[str]:
    with closing(sqlite3.connect(gallery)) as connection:
        return list(connection.iterdump())


def forge(path: Path, **changes: object) -> None:
    """Change fields of a backup's manifest, with the checksum that belongs to it."""
    manifest = replace(read_manifest(path), **changes)
    with path.open("r+b") as file:
        sealed = replace(manifest, sha256=hash_backup(file, manifest))
        file.seek(manifest.bytes)
        file.write(json.dumps({"kind": "backup"} | asdict(sealed)).encode().ljust(MANIFEST_BYTES))


def test_everything_comes_back_on_another_machine(store: Store, backup: Path, tmp_path: Path) -> None:
    store.calibrations.save("abc", "cameras", {"anything": 1}, replacing=False)
    made = back_up(store, backup, replace=True)
    there = tmp_path / "there" / "gallery.db"
    assert restore(backup, there) == made == read_manifest(backup)
    assert dump(there) == dump(store.place)
    assert (made.collections, made.people, made.faces, made.store) == (1, 4, 4, store.id)
    assert made.bytes + MANIFEST_BYTES == backup.stat().st_size
    assert check_gallery(there) == []
    assert stat.S_IMODE(there.stat().st_mode) == stat.S_IMODE(backup.stat().st_mode) == 0o600


def test_a_backup_among_writes_is_one_moment(store: Store, staff: Collection, tmp_path: Path) -> None:
    stop = threading.Event()
    acknowledged = []

    def write() -> None:
        while not stop.is_set():
            number = len(acknowledged)
            person = newcomer(f"p{number:06}", random_units(2, DIMENSION, number), metadata={"x": "y" * 5000})
            store.people.enroll(staff, [person])
            acknowledged.append(person.person_id)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(5):
            before = len(acknowledged)
            made = back_up(store, tmp_path / f"{number}.backup")
            there = tmp_path / str(number) / "gallery.db"
            restore(tmp_path / f"{number}.backup", there)
            assert check_gallery(there) == []  # counters, rows, changes and indexes agree
            with closing(Store(there)) as copy:
                assert len(everybody(copy, "staff")) == made.people >= before
    finally:
        stop.set()
        writer.join()
    assert len(acknowledged) > 1


def test_a_file_is_replaced_only_if_told_to(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "mine"
    file.write_text("something of mine")
    with pytest.raises(BackupRefused, match="exists already"):
        back_up(store, file)
    assert file.read_text() == "something of mine"
    back_up(store, file, replace=True)
    assert read_manifest(file).store == store.id


LIMITED = """
import resource, signal, sys
from pathlib import Path
from sameface.model.store.store import Store
from sameface.model.upkeep.backup import back_up
store = Store(Path(sys.argv[1]))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
back_up(store, Path(sys.argv[2]))
"""


def test_a_disk_without_room_leaves_nothing_behind(store: Store, staff: Collection, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    run = subprocess.run(
        [sys.executable, "-c", LIMITED, store.place, place / "b"], capture_output=True, text=True, check=False
    )
    assert "BackupRefused" in run.stderr.splitlines()[-1]
    assert list(place.iterdir()) == []
    with pytest.raises(BackupRefused, match="cannot be written"):
        back_up(store, tmp_path / "no" / "folder")
    assert everybody(store, staff.name)


def test_a_damaged_gallery_is_not_backed_up(tmp_path: Path) -> None:
    make_gallery(tmp_path / "gallery.db", "ada", 500)
    with (tmp_path / "gallery.db").open("r+b") as file:
        file.seek(20 * 4096)
        file.write(b"\xff" * 4096)
    with closing(Store(tmp_path / "gallery.db")) as store, pytest.raises(SamefaceError, match="damaged"):
        back_up(store, tmp_path / "b")
    assert not list(tmp_path.glob("b*"))


def cut(size: int) -> Callable[[Path], None]:
    return lambda path: os.truncate(path, size if size >= 0 else path.stat().st_size + size)


def flip(place: int) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        content = bytearray(path.read_bytes())
        content[place] ^= 1
        path.write_bytes(content)

    return damage


DAMAGES = {
    "empty": (cut(0), "no backup"),
    "cut in its first page": (cut(100), "cut short"),
    "cut in the middle": (cut(20_000), "cut short"),
    "cut before the manifest": (cut(-MANIFEST_BYTES), "cut short"),
    "without its last byte": (cut(-1), "cut short|lost bytes"),
    "a byte too many": (lambda path: path.write_bytes(path.read_bytes() + b" "), "cut short|lost bytes"),
    "a flipped bit": (flip(30_000), "checksum"),
    "a flipped bit of a count": (lambda path: forge_without_seal(path), "checksum"),
    "text": (lambda path: path.write_text("hello" * 1000), "no backup"),
    "an archive": (lambda path: path.write_bytes(b"\x1f\x8b" + bytes(3000)), "gallery import"),
    "nested far too deep": (lambda path: end_with(path, b"[" * MANIFEST_BYTES), "cut short"),
    "a list": (lambda path: end_with(path, b"[]".ljust(MANIFEST_BYTES)), "cut short"),
    "of a newer format": (lambda path: forge(path, version=VERSION + 1), "install a newer"),
    "of a newer gallery": (lambda path: forge(path, store_version=STORE_VERSION + 1), "install a newer"),
    "no database": (lambda path: blank(path), "damaged"),
    "gone": (lambda path: path.unlink(), "No such file"),
}


def forge_without_seal(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"people": 4', b'"people": 5'))


def end_with(path: Path, manifest: bytes) -> None:
    path.write_bytes(path.read_bytes()[:-MANIFEST_BYTES] + manifest)


def blank(path: Path) -> None:
    """A backup whose checksum is right and whose database is not."""
    content = path.read_bytes()
    path.write_bytes(content[:4096] + bytes(len(content) - 4096 - MANIFEST_BYTES) + content[-MANIFEST_BYTES:])
    forge(path)


@pytest.mark.parametrize("name", DAMAGES)
def test_what_is_no_sound_backup_changes_nothing(name: str, backup: Path, tmp_path: Path) -> None:
    damage, sentence = DAMAGES[name]
    damage(backup)
    gallery = tmp_path / "there" / "gallery.db"
    make_gallery(gallery, "old")
    before = dump(gallery)
    with pytest.raises(BackupRefused, match=sentence):
        restore(backup, gallery, replace=True)
    assert dump(gallery) == before
    assert not list(gallery.parent.glob("*.part"))


def test_a_gallery_is_replaced_only_if_told_to(backup: Path, tmp_path: Path) -> None:
    gallery = tmp_path / "there" / "gallery.db"
    make_gallery(gallery, "old")
    with pytest.raises(BackupRefused, match="--replace"):
        restore(backup, gallery)
    assert people_in(gallery) == ["old"]
    restore(backup, gallery, replace=True)
    assert "ada" in people_in(gallery)


def test_a_gallery_in_use_is_not_replaced(store: Store, backup: Path) -> None:
    with pytest.raises(StoreRefused, match="in use"):
        restore(backup, store.place, replace=True)
    gallery = store.place
    store.close()
    with closing(
        sqlite3.connect(gallery)
    ) as other:  # an older sameface, or a tool, which holds no lock of ours
        other.execute("SELECT * FROM people").fetchall()
        with pytest.raises(StoreRefused, match="in use"):
            restore(backup, gallery, replace=True)
    restore(backup, gallery, replace=True)


def test_a_gallery_is_not_opened_while_it_is_restored(store: Store) -> None:
    store.close()
    with exclusive_lock(lock_of(store.place)), pytest.raises(StoreRefused, match="being restored"):
        Store(store.place)
    Store(store.place).close()


def test_the_log_of_a_killed_process_is_not_read_into_the_restored_gallery(
    backup: Path, tmp_path: Path
) -> None:
    living, killed = tmp_path / "living" / "gallery.db", tmp_path / "killed" / "gallery.db"
    make_gallery(living, "old")
    with closing(Store(living)) as store:
        store.people.enroll(store.collections.get("staff"), [newcomer("newer", random_units(9, DIMENSION))])
        shutil.copytree(living.parent, killed.parent)  # as a kill leaves it: with a log
    assert (killed.parent / "gallery.db-wal").stat().st_size
    restore(backup, killed, replace=True)
    assert "newer" not in people_in(killed)
    assert check_gallery(killed) == []


def test_a_damaged_gallery_can_be_replaced(backup: Path, tmp_path: Path) -> None:
    gallery = tmp_path / "there" / "gallery.db"
    gallery.parent.mkdir()
    for name in ("gallery.db", "gallery.db-wal", "gallery.db-shm"):
        gallery.with_name(name).write_bytes(os.urandom(50_000))
    restore(backup, gallery, replace=True)
    assert check_gallery(gallery) == []


def test_snapshots_of_the_old_gallery_are_gone(store: Store, backup: Path) -> None:
    staff = store.collections.get("staff")
    with closing(open_indexes(store)) as indexes:
        indexes.renew(staff)
    store.people.delete(staff, "ada")
    store.people.enroll(staff, [newcomer("eve", random_units(2, DIMENSION, 9))])
    store.close()
    restore(backup, store.place, replace=True)
    assert not list(store.place.with_name("indexes").glob("*"))
    assert "ada" in people_in(store.place)
    assert check_gallery(store.place) == []


def test_a_backup_of_an_older_version_is_brought_to_this_one(
    store: Store, backup: Path, tmp_path: Path
) -> None:
    content = tmp_path / "old.db"
    content.write_bytes(backup.read_bytes()[:-MANIFEST_BYTES])
    with closing(sqlite3.connect(content)) as connection, connection:
        connection.execute("ALTER TABLE collections DROP COLUMN reviewers")
        connection.execute("DROP TABLE calibrations")
        connection.execute("DROP TABLE chosen_calibrations")
        connection.execute("UPDATE about SET value = '3' WHERE key = 'version'")
    manifest = replace(read_manifest(backup), bytes=content.stat().st_size)
    backup.write_bytes(
        content.read_bytes()
        + json.dumps({"kind": "backup"} | asdict(manifest)).encode().ljust(MANIFEST_BYTES)
    )
    forge(backup, store_version=3)
    restore(backup, tmp_path / "there" / "gallery.db")
    with closing(Store(tmp_path / "there" / "gallery.db")) as there:
        assert everybody(there, "staff") == everybody(store, "staff")
        there.calibrations.save("abc", "cameras", {}, replacing=False)


def test_a_manifest_says_what_is_in_a_backup(backup: Path) -> None:
    manifest = read_manifest(backup)
    assert isinstance(manifest, Manifest)
    assert abs(manifest.created_at - time.time()) < 3600
    assert manifest.to_dict()["faces"] == 4
