"""What was acknowledged is there, what failed has never been, and older versions still open."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from sameface.model.errors import CollectionNotFound, StorageFull, StoreDamaged, StoreRefused
from sameface.model.store.calibrations import peek_calibrations
from sameface.model.store.databases.migrations import VERSION
from sameface.model.store.drafts import list_drafts
from sameface.model.store.records import Collection
from sameface.model.store.store import Store
from tests.api.keys import add_key
from tests.model.people import newcomer, random_units
from tests.model.store.full_disk import leave_no_room
from tests.model.store.staff import BINDING, DIMENSION, count, faces_of

pytestmark = pytest.mark.sqlite  # they look into its file


def test_a_full_disk_is_said_and_leaves_nothing_half_written(store: Store, staff: Collection) -> None:
    store.people.enroll(staff, [newcomer("ada", random_units(1, DIMENSION))])
    leave_no_room(store)
    many = [newcomer(f"p{number}", random_units(5, DIMENSION, number)) for number in range(200)]
    with pytest.raises(StorageFull):
        store.people.enroll(staff, many)
    assert count(store) == (1, 1)
    assert faces_of(store, staff, "ada") == ["ada-0"]


def test_a_gallery_from_the_future_is_refused(tmp_path: Path) -> None:
    Store(tmp_path / "gallery.db").close()
    with sqlite3.connect(tmp_path / "gallery.db") as connection:
        connection.execute(
            "UPDATE about SET value = ? WHERE key IN ('version', 'oldest')", (str(VERSION + 1),)
        )
    connection.close()
    with pytest.raises(StoreRefused, match="newer"):
        Store(tmp_path / "gallery.db")


def test_a_gallery_of_the_first_version_is_brought_to_this_one(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "gallery.db")) as store:
        staff, _ = store.collections.create("staff", BINDING)
        store.people.enroll(staff, [newcomer("ada", random_units(1, DIMENSION))])
    with closing(sqlite3.connect(tmp_path / "gallery.db")) as connection, connection:
        connection.execute("DELETE FROM about WHERE key = 'store'")
        connection.execute("DROP INDEX answers_by_age")
        for column in ("draft_of", "draft", "reviewers"):
            connection.execute(f"ALTER TABLE collections DROP COLUMN {column}")
        connection.execute("UPDATE about SET value = '1' WHERE key = 'version'")
    with closing(Store(tmp_path / "gallery.db")) as store, closing(Store(tmp_path / "gallery.db")) as again:
        assert store.id == again.id
        assert faces_of(store, store.collections.get("staff"), "ada") == ["ada-0"]


def test_drafts_of_the_second_version_are_known_by_their_columns(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "gallery.db")) as store:
        for name in ("staff", "copy (importing)", "staff (replaced)", "staff (reembedding 0123456789ab)"):
            store.collections.create(name, BINDING)
    with closing(sqlite3.connect(tmp_path / "gallery.db")) as connection, connection:
        for column in ("draft_of", "draft", "reviewers"):
            connection.execute(f"ALTER TABLE collections DROP COLUMN {column}")
        connection.execute("UPDATE about SET value = '2' WHERE key = 'version'")
    with closing(Store(tmp_path / "gallery.db")) as store:
        assert [collection.name for collection in store.collections.page()] == ["staff"]
        assert [(draft.draft_of, draft.draft) for draft in list_drafts(store)] == [
            ("copy", "importing"),
            ("staff", "replaced"),
            ("staff", "reembedding 0123456789ab"),
        ]
        with pytest.raises(CollectionNotFound):
            store.collections.get("copy (importing)")


WRITER = """
import sys
from pathlib import Path
from sameface.model.store.store import Store
from tests.model.people import newcomer, random_units
store = Store(Path(sys.argv[1]))
staff = store.collections.get("staff")
for number in range(100_000):
    store.people.enroll(staff, [newcomer(f"p{number}", random_units(1, 8, number))])
    print(number, flush=True)
"""


def test_what_was_acknowledged_survives_a_kill(store: Store, staff: Collection, tmp_path: Path) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path / "gallery.db")],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])},
    )
    acknowledged = [int(writer.stdout.readline()) for _ in range(25)]
    writer.send_signal(signal.SIGKILL)
    acknowledged += [int(line) for line in writer.communicate()[0].split()]
    for number in acknowledged:
        assert faces_of(store, staff, f"p{number}") == [f"p{number}-0"]
    people, faces = count(store)
    assert people == faces == store.collections.get("staff").revision
    assert people - len(acknowledged) in (0, 1)  # the last one may have been written and not yet said


MAKER = """
import sys, time
from pathlib import Path
from sameface.model.store.store import Store
while time.time() < float(sys.argv[2]):
    pass
Store(Path(sys.argv[1])).close()
"""


def test_processes_that_make_the_same_gallery_at_once_do_not_get_in_each_others_way(tmp_path: Path) -> None:
    for attempt in range(3):
        command = [sys.executable, "-c", MAKER, str(tmp_path / f"{attempt}.db"), str(time.time() + 1)]
        environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
        makers = [subprocess.Popen(command, env=environment) for _ in range(3)]
        assert [maker.wait(timeout=30) for maker in makers] == [0, 0, 0]


def test_a_database_that_cannot_be_opened_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreRefused, match="Not a directory"):
        Store(tmp_path / "file" / "gallery.db")
    (tmp_path / "damaged.db").write_bytes(b"SQLite format 3\0" + b"not at all" * 500)
    with pytest.raises(StoreDamaged, match="gallery check"):
        Store(tmp_path / "damaged.db")


VISITOR = """
import sys
from pathlib import Path
from sameface.model.store.store import Store
store = Store(Path(sys.argv[1]))
store.collections.page()
store.close()
"""


def test_the_log_outlives_another_process_that_comes_and_goes(store: Store, staff: Collection) -> None:
    """A second look at the file in this process must not drop the locks that keep the log."""
    store.people.enroll(staff, [newcomer("ada", random_units(1, DIMENSION))])
    peek_calibrations(store.place, "any")
    log = store.place.with_name("gallery.db-wal")
    before = log.stat().st_ino
    subprocess.run(
        [sys.executable, "-c", VISITOR, str(store.place)],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])},
        check=True,
    )
    assert log.stat().st_ino == before
    store.people.enroll(staff, [newcomer("bob", random_units(1, DIMENSION, 1))])
    with closing(Store(store.place)) as other:
        assert count(other) == (2, 2)


def test_keys_of_the_sixth_version_are_for_our_own_routes(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "gallery.db")) as store:
        _, key = add_key(store, "read")
    with closing(sqlite3.connect(tmp_path / "gallery.db")) as connection, connection:
        connection.execute("ALTER TABLE keys DROP COLUMN service")
        connection.execute("UPDATE about SET value = '6' WHERE key = 'version'")
    with closing(Store(tmp_path / "gallery.db")) as store:
        assert store.keys.get(key.key_id) == key
        _, bound = add_key(store, "read", service="compreface/detection")
        assert store.keys.get(bound.key_id).service == "compreface/detection"
