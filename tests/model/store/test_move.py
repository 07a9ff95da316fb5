"""A whole gallery goes to another database and back, whatever interrupts it."""

import signal
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import String, func, select

from sameface.model.access.audit.check_audit import check_audit
from sameface.model.access.audit.seals import seal_audit
from sameface.model.data_folder import GalleryPlace, SharedGallery
from sameface.model.errors import StoreRefused
from sameface.model.store import move as move_module
from sameface.model.store.databases.tables import Text, faces, metadata
from sameface.model.store.drafts import open_draft
from sameface.model.store.move import move_everything
from sameface.model.store.records import NewFace, NewPerson, RememberedResponse
from sameface.model.store.store import Store
from tests.api.keys import add_key
from tests.model.people import everybody, newcomer, random_units
from tests.model.store.staff import BINDING, DIMENSION
from tests.postgres_server import ON_POSTGRES, gallery_in

PEOPLE = 40


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(move_module, "ROWS_AT_ONCE", 7)
    monkeypatch.setenv("SAMEFACE_SECRET_KEY", "s" * 32)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A gallery in SQLite with a row in every table, whose last keys are those of rows that are gone."""
    place = tmp_path / "old" / "gallery.db"
    with closing(Store(place)) as store:
        staff, _ = store.collections.create("staff", replace(BINDING, store_crops=True))
        [values] = random_units(1, DIMENSION, 5)
        store.people.enroll(
            staff,
            [
                NewPerson(
                    "böb", [NewFace("b", values, 0.75, "f" * 64, b"\0\xff")], "B\n\u2028", {"b": 1, "a": None}
                )
            ]
            + [newcomer(f"p{number}", random_units(2, DIMENSION, number)) for number in range(PEOPLE)],
            [RememberedResponse("once", "a" * 64, {"z": 1.5, "a": ["é"]})],
        )
        store.people.delete(staff, f"p{PEOPLE - 1}")
        open_draft(store, "guests", "importing", BINDING)
        store.calibrations.save("abc", "door", {"points": [0.1, 1e-9]}, replacing=False)
        store.calibrations.choose("abc", "door")
        store.feeds.add(staff)
        add_key(store, "read", collections=["staff"])
        add_key(store, "admin")
        store.followers.note("machine", store.collections.get("staff"), 1)
        store.leases.take(1, "photos", 10, 1)
        seal_audit(store)
    return place


@pytest.fixture
def new(tmp_path: Path) -> GalleryPlace:
    """Where it goes: to PostgreSQL in `make postgres`."""
    return gallery_in(tmp_path / "new")


def test_everything_is_there_and_goes_back(old: Path, new: GalleryPlace, tmp_path: Path) -> None:
    with closing(Store(old)) as store:
        people, store_id, keys = everybody(store, "staff"), store.id, (store.keys.page(), store.keys.revision)
        remembered = store.idempotency_keys.find(store.collections.get("staff"), ["once"])
    moved = move_everything(old, new)
    assert {each.table for each in moved if each.rows} == metadata.tables.keys() - {"about"}
    with closing(Store(new)) as store:
        staff = store.collections.get("staff")
        assert (everybody(store, "staff"), store.id) == (people, store_id)
        assert (store.keys.page(), store.keys.revision) == keys
        assert store.idempotency_keys.find(staff, ["once"]) == remembered
        assert store.calibrations.read("abc") == ({"door": {"points": [0.1, 1e-9]}}, "door")
        assert check_audit(store).faults == []
        assert staff.revision == store.changes.latest(staff) == 2 * PEOPLE + 3
    assert move_everything(new, tmp_path / "back.db") == moved
    with closing(Store(tmp_path / "back.db")) as store:
        assert everybody(store, "staff") == people


def test_keys_go_on_after_the_last_one_that_was_ever_given(old: Path, new: GalleryPlace) -> None:
    move_everything(old, new)
    with closing(Store(new)) as store:
        staff = store.collections.get("staff")
        store.people.enroll(staff, [newcomer("new", random_units(1, DIMENSION, 99))])
        with store.frozen() as connection:
            assert connection.execute(select(func.max(faces.c.key))).scalar_one() == 1 + 2 * PEOPLE + 1


KILLED = """
import os, sys
from pathlib import Path
from sameface.model.data_folder import SharedGallery
from sameface.model.store import move

def kill(*_):
    os.kill(os.getpid(), 9)

def report(step, done, total):
    if (step, done) == ("moving faces", 14) and "{moment}" == "faces":
        kill()

move.ROWS_AT_ONCE = 7
if "{moment}" != "faces":
    setattr(move, "{moment}", kill)
places = [
    SharedGallery(each, Path("shared")) if "://" in each else Path(each) for each in ("{old}", "{target}")
]
move.move_everything(*places, report)
"""


@pytest.mark.parametrize("moment", ["faces", "prove", "write_facts"])
@pytest.mark.parametrize("back", [False, True], ids=["there", "back"])
def test_a_move_that_was_killed_goes_on_and_meanwhile_no_half_is_served(
    old: GalleryPlace, new: GalleryPlace, tmp_path: Path, moment: str, *, back: bool
) -> None:
    if back:
        if not ON_POSTGRES:
            pytest.skip("from SQLite to SQLite is the same in both directions")
        move_everything(old, new)
        old, new = new, tmp_path / "back" / "gallery.db"
    source, target = (each.url if isinstance(each, SharedGallery) else each for each in (old, new))
    script = KILLED.format(moment=moment, old=source, target=target)
    killed = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    with pytest.raises(StoreRefused, match="run `sameface gallery move` again"):
        Store(new)
    blocks: list[tuple[str, int]] = []
    move_everything(old, new, lambda step, done, _: blocks.append((step, done)))
    assert blocks[0] == (("moving faces", 21) if moment == "faces" else ("comparing tables", 1))
    with closing(Store(new)) as store:
        assert store.collections.get("staff").people == PEOPLE
    with pytest.raises(StoreRefused, match="was moved from here"):
        Store(old)


def test_what_changed_between_two_runs_is_noticed_and_moved_from_the_start(
    old: Path, new: GalleryPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(move_module, "prove", stop)
        with pytest.raises(KeyboardInterrupt):
            move_everything(old, new)
    with closing(Store(old)) as store:  # which is whole until the move has ended
        store.people.update(store.collections.get("staff"), "p0", {"name": "Ada"})
    with pytest.raises(StoreRefused, match="has changed since"):
        move_everything(old, new)
    move_everything(old, new)
    with closing(Store(new)) as store:
        assert store.people.get(store.collections.get("staff"), "p0").name == "Ada"


def test_a_place_with_something_in_it_is_refused(old: Path, new: GalleryPlace) -> None:
    with closing(Store(new)) as store:
        add_key(store, "read")
    with pytest.raises(StoreRefused, match="There is a gallery already"):
        move_everything(old, new)
    for place in (old, new):
        Store(place).close()


def test_an_open_gallery_is_not_moved(old: Path, new: GalleryPlace, tmp_path: Path) -> None:
    with closing(Store(old)), pytest.raises(StoreRefused, match="in use"):
        move_everything(old, new)
    Store(new).close()
    with closing(Store(new)) as store:
        store.collections.page()
        with pytest.raises(StoreRefused, match="in use"):
            move_everything(old, new)
    with pytest.raises(StoreRefused, match="There is no gallery"):
        move_everything(tmp_path / "nothing.db", new)
    assert not (tmp_path / "nothing.db").exists()
    move_everything(old, new)


def test_text_in_a_primary_key_has_one_order_in_every_database() -> None:
    """Or a move would go on after the wrong row."""
    for table in move_module.TABLES:
        for column in table.primary_key.columns:
            assert not isinstance(column.type, String) or isinstance(column.type, Text), column
