"""A restore that is killed at any moment leaves the old gallery or the new one, whole."""

import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from sameface.model.store.store import Store
from sameface.model.upkeep.backup import back_up, restore
from sameface.model.upkeep.check_gallery import check_gallery
from tests.model.people import everybody
from tests.model.upkeep.galleries import make_gallery, people_in

pytestmark = pytest.mark.sqlite  # PostgreSQL has tools of its own

FACES = 2_000
RESTORE = """
import sys
from pathlib import Path
from sameface.model.upkeep.backup import restore
print("ready", flush=True)
while True:
    for backup in sys.argv[2:]:
        restore(Path(backup), Path(sys.argv[1]), replace=True)
        print("restored", backup, flush=True)
"""


def test_a_restore_that_is_killed_leaves_the_old_gallery_or_the_new_one(tmp_path: Path) -> None:
    backups = [make_backup(tmp_path, name) for name in ("old", "new")]
    gallery = tmp_path / "there" / "gallery.db"
    began = time.monotonic()
    restore(backups[1], gallery)
    seconds = time.monotonic() - began
    seen = set()
    for number in range(12):
        command = [sys.executable, "-c", RESTORE, str(gallery), *map(str, backups)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for _ in range(1 + number % 3):  # restores that are finished: none, the old one, both
                assert process.stdout.readline()
            time.sleep(seconds * number / 12)  # into the next one
            process.send_signal(signal.SIGKILL)
        [person] = people_in(gallery)
        seen.add(person)
        assert check_gallery(gallery) == []
        with closing(Store(gallery)) as store:  # so that the next one finds a log, too
            assert len(everybody(store, "staff")[0]["faces"]) == FACES
            store.people.update(store.collections.get("staff"), person, {"name": str(number)})
    assert seen == {"old", "new"}


def make_backup(folder: Path, name: str) -> Path:
    """A backup of a gallery with one person of that name."""
    make_gallery(folder / name / "gallery.db", name, FACES)
    with closing(Store(folder / name / "gallery.db")) as store:
        back_up(store, folder / f"{name}.backup")
    return folder / f"{name}.backup"
