"""Backups that a server makes by itself: when they are due, which are deleted, and who makes them."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, replace
from json import dumps
from pathlib import Path

import pytest

from sameface.model.observer import Observer
from sameface.model.store.records import Collection
from sameface.model.store.store import Store
from sameface.model.upkeep.backup import back_up
from sameface.model.upkeep.backup_file import MANIFEST_BYTES, hash_backup, read_manifest
from sameface.model.upkeep.scheduled_backups import BackupPlan, ScheduledBackups, Stopped
from tests.conftest import wait_for

pytestmark = pytest.mark.sqlite  # PostgreSQL has tools of its own

HOUR = 3600.0


class Watching(Observer):
    def __init__(self) -> None:
        self.newest = 0.0
        self.failed = 0

    def backup(self, made_at: float) -> None:
        self.newest = made_at

    def failed_backup(self) -> None:
        self.failed += 1


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "backups"


@pytest.fixture
def backups(store: Store, staff: Collection, folder: Path) -> Iterator[ScheduledBackups]:
    """Backups every 24 hours, of which 3 are kept; the first is made."""
    assert staff.people
    with closing(ScheduledBackups(store, BackupPlan(folder, 24, 3), Watching())) as backups:
        wait_for(lambda: backups.observer.newest)
        yield backups


def age(path: Path, hours: float) -> Path:
    """Make a backup as much older, with the checksum that belongs to it."""
    manifest = read_manifest(path)
    older = replace(manifest, created_at=manifest.created_at - hours * HOUR)
    with path.open("r+b") as file:
        sealed = replace(older, sha256=hash_backup(file, older))
        file.seek(manifest.bytes)
        file.write(dumps({"kind": "backup"} | asdict(sealed)).encode().ljust(MANIFEST_BYTES))
    return path.rename(path.with_name(f"sameface-{hours}.backup"))


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_backup_is_made_at_once_and_again_when_it_is_due(backups: ScheduledBackups, folder: Path) -> None:
    [first] = folder.iterdir()
    made = read_manifest(first).created_at
    assert backups.observer.newest == made
    backups.make_due(made + 23 * HOUR)
    assert names(folder) == {first.name}
    backups.make_due(made + 25 * HOUR)
    assert len(names(folder)) == 2


def test_the_newest_are_kept_and_what_is_not_ours_stays(
    backups: ScheduledBackups, folder: Path, tmp_path: Path
) -> None:
    [first] = folder.iterdir()
    made, content = read_manifest(first).created_at, first.read_bytes()
    old = age(first, 30)
    for hours in (90, 120, 60):
        copy = folder / "copy"
        copy.write_bytes(content)
        age(copy, hours)
    (folder / "sameface-notes.backup").write_text("of mine")
    (folder / "monday.backup").write_bytes(old.read_bytes())
    with closing(Store(tmp_path / "other" / "gallery.db")) as other:
        back_up(other, folder / "sameface-other.backup")
    backups.make_due(made + 1)
    kept = names(folder)
    assert {"sameface-notes.backup", "monday.backup", "sameface-other.backup"} <= kept
    assert {"sameface-30.backup", "sameface-60.backup"} <= kept
    assert not {"sameface-90.backup", "sameface-120.backup"} & kept
    assert len(backups.find()) == 3


def test_a_clock_that_was_put_back_neither_stops_backups_nor_deletes_the_new_one(
    backups: ScheduledBackups, folder: Path
) -> None:
    [first] = folder.iterdir()
    content = first.read_bytes()
    first.unlink()
    for years in (1, 2, 3, 4):
        copy = folder / f"sameface-{years}.backup"
        copy.write_bytes(content)
        age(copy, -years * 365 * 24)
    now = read_manifest_time(content, folder)
    backups.make_due(now)
    of_now = [path for path, manifest in backups.find().items() if manifest.created_at < now + HOUR]
    assert (len(of_now), len(backups.find())) == (1, 3)
    backups.make_due(now + 2)
    assert len(backups.find()) == 3


def read_manifest_time(content: bytes, folder: Path) -> float:
    copy = folder.parent / "copy"
    copy.write_bytes(content)
    return read_manifest(copy).created_at


def test_a_failure_is_counted_and_leaves_nothing(store: Store, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with closing(ScheduledBackups(store, BackupPlan(tmp_path / "file", 1, 1), Watching())) as backups:
        wait_for(lambda: backups.observer.failed == 1)
    assert (tmp_path / "file").read_text() == "no folder"


def test_what_a_killed_process_left_is_deleted(backups: ScheduledBackups, folder: Path) -> None:
    [first] = folder.iterdir()
    left = folder / f"{first.name}.12345.part"
    left.write_bytes(b"half")
    backups.make_due(read_manifest(first).created_at + 25 * HOUR)
    assert not left.exists()
    assert len(names(folder)) == 2


def test_a_server_that_stops_gives_the_backup_up(
    backups: ScheduledBackups, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [first] = folder.iterdir()
    monkeypatch.setattr("sameface.model.store.databases.sqlite.PAGES_AT_ONCE", 1)
    backups.close()
    with pytest.raises(Stopped):
        backups.make_due(read_manifest(first).created_at + 25 * HOUR)
    assert names(folder) == {first.name}


MAKE = """
import sys, time
from pathlib import Path
from sameface.model.store.store import Store
from sameface.model.upkeep.scheduled_backups import BackupPlan, ScheduledBackups
backups = ScheduledBackups(Store(Path(sys.argv[1])), BackupPlan(Path(sys.argv[2]), 24, 3))
while not backups.find():
    time.sleep(0.02)
backups.close()
"""


def test_of_several_processes_one_makes_it(store: Store, folder: Path) -> None:
    command = [sys.executable, "-c", MAKE, str(store.place), str(folder)]
    processes = [subprocess.Popen(command) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert len(names(folder)) == 1
