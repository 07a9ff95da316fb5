"""What only PostgreSQL does: writers beside each other, its locks, its order of ids, and its refusals."""

import itertools
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Connection

from sameface.model.data_folder import SharedGallery
from sameface.model.errors import InvalidArgument, StoreRefused, StoreUnavailable
from sameface.model.store import changes as changes_module
from sameface.model.store.collections import refuse_gone
from sameface.model.store.databases.migrations import VERSION
from sameface.model.store.databases.postgres import notices as notices_module
from sameface.model.store.databases.postgres import postgres_connections as connections_module
from sameface.model.store.people.newcomers import add_people
from sameface.model.store.records import Collection, RememberedResponse
from sameface.model.store.store import Store
from sameface.model.upkeep.backup import back_up
from sameface.model.upkeep.errors import BackupRefused
from tests.conftest import wait_for
from tests.model.people import newcomer, random_units
from tests.model.store.staff import BINDING, DIMENSION
from tests.postgres_server import ON_POSTGRES, connect_to, gallery_in

pytestmark = pytest.mark.skipif(not ON_POSTGRES, reason="`make postgres` has a server")


@pytest.fixture
def place(tmp_path: Path) -> SharedGallery:
    place = gallery_in(tmp_path)
    assert isinstance(place, SharedGallery)
    return place


@pytest.fixture
def stores(place: SharedGallery) -> Iterator[list[Store]]:
    """Two machines."""
    with closing(Store(place)) as here, closing(Store(place)) as there:
        yield [here, there]


def somebody(number: int) -> list:
    return [newcomer(f"p{number}", random_units(1, DIMENSION, number))]


def test_processes_that_open_a_new_database_together_make_one(place: SharedGallery) -> None:
    with ThreadPoolExecutor(6) as threads:
        opened = list(threads.map(lambda _: Store(place), range(6)))
    assert len({store.id for store in opened}) == 1
    for store in opened:
        store.close()


def test_a_collection_has_one_writer_and_others_do_not_wait_for_it(stores: list[Store]) -> None:
    here, there = stores
    first, second = (here.collections.create(name, BINDING)[0] for name in ("first", "second"))
    waiting = threading.Thread(target=lambda: there.people.enroll(first, somebody(2)))
    with here.writing() as connection:
        refuse_gone(connection, first)
        waiting.start()
        there.people.enroll(second, somebody(1))
        assert there.collections.get("second").people == 1
        waiting.join(0.3)
        assert waiting.is_alive()
        add_people(connection, first, somebody(1))
    waiting.join()
    assert here.collections.get("first").people == 2


def test_many_writers_of_one_collection_number_their_changes_without_a_gap(stores: list[Store]) -> None:
    staff, _ = stores[0].collections.create("staff", BINDING)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda n: stores[n % 2].people.enroll(staff, somebody(n)), range(200)))
    staff = stores[1].collections.get("staff")
    assert (staff.people, staff.faces, staff.revision) == (200, 200, 200)
    keys = [key for block in stores[1].changes.since(staff, 0) for key in block.came.faces]
    assert keys == sorted(keys)
    assert len(keys) == 200


def test_two_who_make_the_same_collection_get_the_same_one(stores: list[Store]) -> None:
    with ThreadPoolExecutor(2) as threads:
        for number in range(20):
            name = f"c{number}"
            made = list(threads.map(lambda store, name=name: store.collections.create(name, BINDING), stores))
            assert len({collection.key for collection, _ in made}) == 1
            assert sorted(new for _, new in made) == [False, True]


def test_ids_are_in_the_order_of_their_bytes(stores: list[Store]) -> None:
    staff, _ = stores[0].collections.create("staff", BINDING)
    ids = ["a", "B", "_", "a-b", "ab", "A", "~", "10", "9", "a.b"]
    stores[0].people.enroll(staff, [newcomer(each, random_units(1, DIMENSION)) for each in ids])
    assert [person.person_id for person in stores[1].people.page(staff, 100)] == sorted(ids)
    assert [person.person_id for person in stores[1].people.page(staff, 2, "a")] == ["a-b", "a.b"]


def test_a_snapshot_does_not_change_while_others_write(stores: list[Store]) -> None:
    here, there = stores
    staff, _ = here.collections.create("staff", BINDING)
    with here.frozen():
        assert here.collections.get("staff").people == 0
        there.people.enroll(staff, somebody(1))
        assert here.collections.get("staff").people == 0
        assert here.changes.latest(staff) == 1
    assert here.collections.get("staff").people == 1


def test_who_holds_a_lock_is_told_when_its_connection_was_lost(
    stores: list[Store], place: SharedGallery
) -> None:
    here, there = stores
    with here.locked("feeding") as held:
        assert held is not None
        assert held()
        with there.locked("feeding") as another:
            assert another is None
        with connect_to(place) as operator:
            operator.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' "
                "AND mode = 'ExclusiveLock' AND pid <> pg_backend_pid() "
                "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            )
        assert not held()
        with there.locked("feeding") as another:
            assert another is not None
        assert not held()


def test_machines_whose_clocks_are_an_hour_or_days_apart_agree(
    stores: list[Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = stores
    staff, _ = here.collections.create("staff", BINDING)
    now = time.time()
    for number, hours in enumerate((0, 1, -1, 48, -48)):
        monkeypatch.setattr(time, "time", lambda hours=hours: now + 3600 * hours)
        response = RememberedResponse(f"once-{number}", "a" * 64, {"person_id": f"p{number}"})
        here.people.enroll(staff, somebody(number), [response])
    monkeypatch.undo()
    keys = [f"once-{number}" for number in range(5)]
    assert there.idempotency_keys.find(staff, keys).keys() == set(keys)
    again = there.people.enroll(staff, somebody(1), [RememberedResponse("once-1", "a" * 64, {})])
    assert again["once-1"].response == {"person_id": "p1"}
    staff = there.collections.get("staff")
    assert (staff.people, staff.revision) == (5, 5)


def test_text_that_it_cannot_keep_is_refused_and_not_quoted(stores: list[Store]) -> None:
    staff, _ = stores[0].collections.create("staff", BINDING)
    [person] = somebody(1)
    with pytest.raises(InvalidArgument, match="NUL") as refused:
        stores[0].people.enroll(staff, [replace(person, name="se\0cret")])
    assert "cret" not in refused.value.detail
    assert stores[0].collections.get("staff").people == 0


def test_statements_by_key_use_indexes_and_keep_their_plans_and_long_ones_are_planned_anew(
    stores: list[Store],
) -> None:
    """A plan that was made while a table was small would otherwise read all of it when it has grown."""

    def settings(connection: Connection) -> list[str]:
        names = ("plan_cache_mode", "enable_seqscan", "statement_timeout")
        return [connection.exec_driver_sql(f"SHOW {name}").scalar_one() for name in names]

    with stores[0].writing() as connection:
        assert settings(connection) == ["force_generic_plan", "off", "30s"]
    with stores[0].writing(patient=True) as connection:
        assert settings(connection) == ["auto", "on", "0"]
    with stores[0]._database.reading() as connection:
        assert settings(connection) == ["auto", "on", "30s"]
    with stores[0].frozen() as connection:
        assert settings(connection) == ["auto", "on", "0"]


def test_reading_all_faces_takes_as_long_as_the_reader_does(
    place: SharedGallery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Much more is read than sockets hold, so that the server waits for the reader."""
    hurried = connections_module.SESSION.replace("statement_timeout = '30s'", "statement_timeout = '300ms'")
    binding, many = replace(BINDING, dimension=512), 3 * changes_module.ROWS_AT_ONCE
    with closing(Store(place)) as store:
        staff, _ = store.collections.create("staff", binding)
        store.people.enroll(staff, [newcomer("first", random_units(1, 512))])
        store.people.enroll(staff, [newcomer("ada", random_units(many, 512))])
    monkeypatch.setattr(connections_module, "SESSION", hurried)
    with closing(Store(place)) as store:
        came = 0
        for sequence in (0, 1):  # by COPY, and change by change
            for block in store.changes.since(staff, sequence):
                came += len(block.came.faces)
                time.sleep(0.4)
        assert came == 2 * many + 1
        with store.frozen() as connection:
            connection.exec_driver_sql("SELECT pg_sleep(0.4)")
        with pytest.raises(StoreUnavailable, match="took too long"), store.writing() as connection:
            connection.exec_driver_sql("SELECT pg_sleep(0.4)")


def test_who_waits_too_long_for_another_writer_is_told_to_come_back(
    place: SharedGallery, monkeypatch: pytest.MonkeyPatch
) -> None:
    hurried = connections_module.SESSION.replace("lock_timeout = '25s'", "lock_timeout = '200ms'")
    monkeypatch.setattr(connections_module, "SESSION", hurried)
    with closing(Store(place)) as here, closing(Store(place)) as there:
        staff, _ = here.collections.create("staff", BINDING)
        with here.writing() as connection:
            refuse_gone(connection, staff)
            with pytest.raises(StoreUnavailable, match="another writer was faster") as late:
                there.people.enroll(staff, somebody(1))
        assert late.value.facts["retry_after_seconds"]
        there.people.enroll(staff, somebody(1))
        assert here.collections.get("staff").people == 1


def test_changes_are_announced_when_they_can_be_read_and_never_if_they_were_not_made(
    stores: list[Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A notice that came before the commit would make others look once, in vain."""
    here, there = stores
    monkeypatch.setattr(notices_module, "GATHER_SECONDS", 0.0)
    heard: list[tuple[int, int]] = []
    done = threading.Event()
    staff, _ = here.collections.create("staff", BINDING)
    listener = threading.Thread(
        target=there.listen, args=(lambda key: heard.append((key, there.changes.latest(staff))), done)
    )
    listener.start()
    try:
        number = itertools.count()

        def is_heard() -> bool:
            here.people.enroll(staff, somebody(next(number)))
            return bool(heard)

        wait_for(is_heard)
        time.sleep(0.3)
        heard.clear()
        with suppress(ZeroDivisionError), here.writing() as connection:
            add_people(connection, staff, somebody(998))
            raise ZeroDivisionError
        time.sleep(0.3)
        assert not heard
        with here.writing() as connection:
            add_people(connection, staff, somebody(999))
            time.sleep(0.3)
        wait_for(lambda: bool(heard))
        assert heard == [(staff.key, here.changes.latest(staff))]
    finally:
        done.set()
        listener.join()


def test_a_backup_is_left_to_its_own_tools(stores: list[Store], tmp_path: Path) -> None:
    with pytest.raises(BackupRefused, match="pg_dump"):
        back_up(stores[0], tmp_path / "backup")
    assert not (tmp_path / "backup").exists()


@pytest.mark.parametrize(("oldest", "opens"), [(str(VERSION), True), ("99", False)])
def test_a_newer_database_opens_if_it_says_that_older_code_may_use_it(
    place: SharedGallery, oldest: str, opens: bool
) -> None:
    Store(place).close()
    with connect_to(place) as connection, connection:
        connection.execute("UPDATE about SET value = '99' WHERE key = 'version'")
        connection.execute("UPDATE about SET value = %s WHERE key = 'oldest'", [oldest])
        connection.execute("ALTER TABLE collections ADD COLUMN invented varchar")
    if not opens:
        with pytest.raises(StoreRefused, match="install a newer one"):
            Store(place)
        return
    with closing(Store(place)) as store:
        staff: Collection = store.collections.create("staff", BINDING)[0]
        store.people.enroll(staff, somebody(1))
        assert store.collections.get("staff").people == 1
