"""Followers say how far they are; the changes behind them go, and whoever was away reads everything anew."""

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest

from sameface.model.errors import StoreUnavailable
from sameface.model.gallery.index.faiss import collection_indexes as indexes_module
from sameface.model.gallery.index.faiss.collection_indexes import CollectionIndexes
from sameface.model.store import changes as changes_module
from sameface.model.store import followers as followers_module
from sameface.model.store.changes import ChangesCompacted
from sameface.model.store.databases.migrations import COMPACTS_FROM
from sameface.model.store.records import Collection, FaceChanges
from sameface.model.store.store import Store
from sameface.model.upkeep.check_gallery import inspect_gallery
from tests.conftest import wait_for
from tests.model.gallery.index.faiss.staff import DIMENSION
from tests.model.people import newcomer, random_units
from tests.postgres_server import ON_POSTGRES, connect_to

Since: TypeAlias = Callable[[Collection, int], Generator[FaceChanges, None, None]]

NEW = random_units(1, DIMENSION, 77)
LOST = random_units(1, DIMENSION, 78)


@pytest.fixture(autouse=True)
def _few_are_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followers_module, "FEWEST", 1)
    monkeypatch.setattr(followers_module, "MOST", 100)


@pytest.fixture
def machines(store: Store, tmp_path: Path) -> Iterator[list[CollectionIndexes]]:
    """The indexes of two machines, each with a folder of its own."""
    here, there = (CollectionIndexes(store, tmp_path / name, "cpu") for name in ("here", "there"))
    with closing(here), closing(there):
        yield [here, there]


def count_changes(store: Store) -> int:
    with store.frozen() as connection:
        return connection.exec_driver_sql("SELECT count(*) FROM changes").scalar_one()


def finds(store: Store, indexes: CollectionIndexes, probe: np.ndarray) -> bool:
    """Whether a search finds a face that is the probe itself."""
    hits = indexes.follow(store.collections.get("staff")).search(probe, 1)
    return bool(hits.similarities[0, 0] > 0.999)


def settle(machine: CollectionIndexes) -> None:
    """Wait for what the upkeep thread has to do, then note how far the machine is."""
    machine._upkeep.submit(lambda: None).result()
    machine._follower.note()


def write_on(store: Store, staff: Collection) -> None:
    """Somebody comes, and somebody comes and goes."""
    store.people.enroll(staff, [newcomer("new", NEW), newcomer("lost", LOST)])
    store.people.delete(staff, "lost")


def test_changes_are_deleted_behind_the_slowest_follower(
    store: Store, staff: Collection, machines: list[CollectionIndexes]
) -> None:
    here, there = machines
    for machine in machines:
        machine.follow(staff)
        settle(machine)
    write_on(store, staff)
    assert finds(store, here, NEW)
    for held in here._held.values():
        here.save(held)
    settle(here)
    here._follower.compact()
    assert count_changes(store) == 3  # `there` has 300 of them
    assert finds(store, there, NEW)
    assert not finds(store, there, LOST)
    assert inspect_gallery(store, None, None) == []


def test_nothing_is_deleted_while_nobody_says_how_far_they_are_or_older_code_may_run(
    store: Store, staff: Collection, machines: list[CollectionIndexes]
) -> None:
    assert store.followers.compact(staff) == 0
    machines[0].follow(staff)
    settle(machines[0])
    with store.writing() as connection:
        connection.exec_driver_sql(f"INSERT INTO about VALUES ('{COMPACTS_FROM}', '99999999999')")
    assert store.followers.compact(staff) == 0
    assert count_changes(store) == 300


def test_who_was_away_for_longer_than_the_floor_reads_everything_anew(
    store: Store, staff: Collection, machines: list[CollectionIndexes]
) -> None:
    here, away = machines
    store.people.enroll(staff, [newcomer("gone", random_units(1, DIMENSION, 5))])
    assert finds(store, away, random_units(1, DIMENSION, 5))
    settle(away)
    with store.writing() as connection:
        old = followers_module.FLOOR_SECONDS + 1
        connection.exec_driver_sql(f"UPDATE followers SET seen_at = seen_at - {old}")
    store.people.delete(staff, "gone")
    write_on(store, staff)
    here.follow(store.collections.get("staff"))
    settle(here)
    here._follower.compact()
    assert count_changes(store) == 0
    with pytest.raises(ChangesCompacted):
        list(store.changes.since(staff, 301))
    assert not finds(store, away, random_units(1, DIMENSION, 5))
    assert finds(store, away, NEW)
    assert not finds(store, away, LOST)
    assert inspect_gallery(store, None, None) == []


def test_a_snapshot_from_before_what_is_kept_is_not_used(
    store: Store, staff: Collection, machines: list[CollectionIndexes], tmp_path: Path, caplog
) -> None:
    here, away = machines
    away.follow(staff)
    away.close()
    write_on(store, staff)
    here.follow(store.collections.get("staff"))
    settle(here)
    while store.followers.compact(staff):
        pass
    assert count_changes(store) == 0
    with closing(CollectionIndexes(store, tmp_path / "there", "cpu")) as again:
        assert finds(store, again, NEW)
        assert not finds(store, again, LOST)
    assert "no longer kept" in caplog.text


def test_a_reading_of_everything_that_failed_begins_anew(
    store: Store, staff: Collection, machines: list[CollectionIndexes]
) -> None:
    index = machines[0].build(staff).index
    index.sequence = 0  # as if only the last block had not come
    index.follow(staff.revision, lambda sequence: store.changes.since(staff, sequence))
    assert (index.size, index.columns.count) == (300, 300)


@pytest.mark.parametrize("begun", [True, False])
def test_an_index_stays_while_the_store_is_away_and_goes_on_where_it_was(
    store: Store,
    staff: Collection,
    machines: list[CollectionIndexes],
    monkeypatch: pytest.MonkeyPatch,
    *,
    begun: bool,
) -> None:
    here, _ = machines
    monkeypatch.setattr(changes_module, "ROWS_AT_ONCE", 100)
    if begun:
        here.follow(staff)
    else:
        here._held[staff.key] = here._open(staff)
    held = here._held[staff.key]
    crowd = [newcomer(f"c{number}", random_units(1, DIMENSION, 100 + number)) for number in range(250)]
    store.people.enroll(staff, crowd)
    with monkeypatch.context() as patch:
        patch.setattr(store.changes, "since", cut_off_after_a_block(store.changes.since))
        for _ in range(2):
            with pytest.raises(StoreUnavailable):
                here.follow(store.collections.get("staff"))
    assert here._held[staff.key] is held
    assert held.index.sequence == (500 if begun else 0)
    store.people.delete(staff, "c0")
    write_on(store, staff)
    assert finds(store, here, NEW)
    assert not finds(store, here, LOST)
    assert not finds(store, here, random_units(1, DIMENSION, 100))
    assert held.index.size == 300 + 249 + 1
    found = held.index.search_means(random_units(1, DIMENSION, 101), 1)
    assert found.similarities[0, 0] > 0.999


def cut_off_after_a_block(since: Since) -> Since:
    """The changes, whose store goes away after the first block."""

    def read(collection: Collection, sequence: int) -> Iterator[FaceChanges]:
        with closing(since(collection, sequence)) as blocks:
            yield next(blocks)
        raise StoreUnavailable("It is away.", retry_after_seconds=1)

    return read


def test_changes_that_an_index_lacks_are_needed_whoever_wrote_the_snapshot(
    store: Store, staff: Collection, tmp_path: Path
) -> None:
    behind, ahead = (CollectionIndexes(store, tmp_path / "indexes", "cpu") for _ in range(2))
    with closing(behind), closing(ahead):
        behind.follow(staff)
        behind._upkeep.submit(lambda: None).result()
        held = behind._held[staff.key]
        write_on(store, staff)
        ahead.follow(store.collections.get("staff"))
        ahead.save(ahead._held[staff.key], wait=True)
        behind.save(held)
        assert (held.saved, held.needed_after) == (303, 300)


def test_a_server_notes_and_compacts_by_itself(
    store: Store, staff: Collection, machines: list[CollectionIndexes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexes_module, "FORGET_SECONDS", 0.05)
    machines[0].follow(staff)
    machines[0].keep_forgetting()
    wait_for(lambda: count_changes(store) == 0)


@pytest.mark.skipif(not ON_POSTGRES, reason="only machines tell each other")
def test_a_machine_hears_of_changes_and_a_lost_listener_is_harmless(
    store: Store, staff: Collection, machines: list[CollectionIndexes]
) -> None:
    there = machines[1]
    for machine in machines:
        machine.follow(staff)
        machine.keep_forgetting()
    held = there._held[staff.key]

    def hears() -> bool:
        store.people.update(staff, "p1", {"name": "Ada"})
        return held.index.sequence > 300

    wait_for(hears)
    with connect_to(store.place) as connection, connection:
        listeners = "FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"
        connection.execute(f"SELECT pg_terminate_backend(pid) {listeners}")
    write_on(store, staff)
    assert finds(store, there, NEW)
    assert not finds(store, there, LOST)
