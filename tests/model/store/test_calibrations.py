"""The calibrations that users made, in the store."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from sameface.model.errors import AlreadyExists, CalibrationNotFound
from sameface.model.store.calibrations import peek_calibrations
from sameface.model.store.store import Store
from tests.postgres_server import gallery_in


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(gallery_in(tmp_path))) as store:
        yield store


def test_calibrations_are_kept_by_bundle_and_name(store: Store) -> None:
    store.calibrations.save("one", "a", {"curve": [1.5]}, replacing=False)
    store.calibrations.save("two", "a", {"curve": []}, replacing=False)
    assert store.calibrations.read("one") == ({"a": {"curve": [1.5]}}, None)
    assert peek_calibrations(store.place, "two") == ({"a": {"curve": []}}, None)


def test_one_is_replaced_only_if_told_to(store: Store) -> None:
    store.calibrations.save("one", "a", {"curve": 1}, replacing=False)
    with pytest.raises(AlreadyExists):
        store.calibrations.save("one", "a", {"curve": 2}, replacing=False)
    assert store.calibrations.read("one")[0]["a"] == {"curve": 1}
    store.calibrations.save("one", "a", {"curve": 2}, replacing=True)
    assert store.calibrations.read("one")[0]["a"] == {"curve": 2}


def test_one_that_is_removed_is_no_longer_chosen(store: Store) -> None:
    for name in ("a", "b"):
        store.calibrations.save("one", name, {}, replacing=False)
        store.calibrations.choose("one", name)
    assert store.calibrations.read("one") == ({"a": {}, "b": {}}, "b")
    store.calibrations.remove("one", "b")
    assert store.calibrations.read("one") == ({"a": {}}, None)
    with pytest.raises(CalibrationNotFound):
        store.calibrations.remove("one", "b")


def test_a_file_chosen_stays_chosen_if_another_is_removed(store: Store) -> None:
    store.calibrations.save("one", "a", {}, replacing=False)
    store.calibrations.choose("one", "of-a-file")
    store.calibrations.remove("one", "a")
    assert store.calibrations.read("one") == ({}, "of-a-file")


def test_looking_makes_no_database_and_migrates_none(tmp_path: Path) -> None:
    path = tmp_path / "gallery.db"
    assert peek_calibrations(path, "one") == ({}, None)
    assert not path.exists()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE about (key TEXT, value TEXT)")
    assert peek_calibrations(path, "one") == ({}, None)


def test_looking_does_not_wait_for_a_writer(store: Store) -> None:
    store.calibrations.save("one", "a", {}, replacing=False)
    with store.writing():
        assert peek_calibrations(store.place, "one") == ({"a": {}}, None)
