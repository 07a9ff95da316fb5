"""A file that was deleted or replaced under an open store takes no writes, and is not read from."""

import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from sameface.model.errors import StoreRefused
from sameface.model.store.records import Collection
from sameface.model.store.store import Store
from tests.model.people import newcomer, random_units
from tests.model.store.staff import BINDING, DIMENSION, count

pytestmark = pytest.mark.sqlite  # they look into its file


def delete(path: Path) -> None:
    path.rename(path.with_name("aside"))  # its name is gone, and it can be put back


def replace(path: Path) -> None:
    with closing(Store(path.with_name("other.db"))) as other:
        other.collections.create("staff", BINDING)
    delete(path)
    shutil.copy(path.with_name("other.db"), path)


@pytest.mark.parametrize("take_away", [delete, replace])
def test_a_file_that_is_no_longer_there_takes_no_writes_and_answers_nothing(
    store: Store, staff: Collection, tmp_path: Path, take_away: Callable[[Path], None]
) -> None:
    store.people.enroll(staff, [newcomer("ada", random_units(1, DIMENSION))])
    take_away(store.place)
    left = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for call in (
        lambda: store.people.enroll(staff, [newcomer("bob", random_units(1, DIMENSION, 1))]),
        lambda: store.people.delete(staff, "ada"),
        lambda: store.collections.get("staff"),
        lambda: store.people.get(staff, "ada"),
        lambda: store.changes.latest(staff),
    ):
        with pytest.raises(StoreRefused, match="deleted or replaced"):
            call()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == left
    (tmp_path / "aside").replace(store.place)
    assert count(store) == (1, 1)
    store.people.enroll(staff, [newcomer("bob", random_units(1, DIMENSION, 1))])
    assert count(store) == (2, 2)


def test_a_file_that_is_taken_away_during_a_write_gets_nothing_of_it(
    store: Store, staff: Collection, tmp_path: Path
) -> None:

    def write() -> None:
        with store.writing() as connection:
            connection.exec_driver_sql("UPDATE collections SET people = 7")
            delete(store.place)

    with pytest.raises(StoreRefused):
        write()
    (tmp_path / "aside").replace(store.place)
    assert count(store) == (0, 0)
    assert staff.people == 0


def test_the_log_is_not_emptied_into_a_file_that_replaced_the_database(
    store: Store, staff: Collection, tmp_path: Path
) -> None:
    store.people.enroll(staff, [newcomer("ada", random_units(1, DIMENSION))])
    store.people.delete(staff, "ada")
    replace(store.place)
    content = store.place.read_bytes()
    store._database._forget_log()
    assert store.place.read_bytes() == content
    assert (tmp_path / "gallery.db-wal").stat().st_size
