"""The store: what was acknowledged is there, what failed has never been."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sameface.model.errors import (
    AlreadyExists,
    CollectionNotFound,
    FaceNotFound,
    PersonNotFound,
    StorageFull,
    StoreRefused,
)
from sameface.model.store import changes as changes_module
from sameface.model.store.drafts import list_drafts
from sameface.model.store.migrations import VERSION
from sameface.model.store.records import Binding, Collection, NewFace, NewPerson, RememberedResponse
from sameface.model.store.store import Store
from tests.model.people import newcomer, random_units

DIMENSION = 8
BINDING = Binding(bundle="tiny", identity="abc", dimension=DIMENSION)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "gallery.db")
    yield store
    store.close()


@pytest.fixture
def staff(store: Store) -> Collection:
    return store.collections.create("staff", BINDING)[0]


def faces_of(store: Store, collection: Collection, person_id: str) -> list[str]:
    return [face.face_id for face in store.people.get(collection, person_id).faces]


def count(store: Store) -> tuple[int, int]:
    staff = store.collections.get("staff")
    return staff.people, staff.faces


def test_a_collection_is_made_once_and_must_stay_what_it_is(store: Store, staff: Collection) -> None:
    assert store.collections.create("staff", BINDING) == (staff, False)
    with pytest.raises(AlreadyExists, match="store_crops"):
        store.collections.create("staff", replace(BINDING, store_crops=True))
    assert store.collections.get("staff") == staff
    assert [collection.name for collection in store.collections.page(10)] == ["staff"]


def test_a_deleted_collection_takes_everybody_with_it_and_its_key_is_not_used_again(
    store: Store, staff: Collection
) -> None:
    store.people.enroll(staff, [newcomer("ada", random_units(2, DIMENSION))])
    store.collections.delete("staff")
    with pytest.raises(CollectionNotFound):
        store.collections.get("staff")
    again, new = store.collections.create("staff", BINDING)
    assert new
    assert again.key > staff.key
    assert count(store) == (0, 0)
    assert store.collections.all_keys() == {again.key}
    with pytest.raises(CollectionNotFound):
        store.people.enroll(staff, [newcomer("ada", random_units(1, DIMENSION))])


def test_a_person_is_kept_with_name_metadata_and_faces(store: Store, staff: Collection) -> None:
    store.people.enroll(
        staff, [newcomer("ada", random_units(2, DIMENSION), name="Ada", metadata={"room": [1, None]})]
    )
    person = store.people.get(staff, "ada")
    assert (person.name, person.metadata) == ("Ada", {"room": [1, None]})
    assert [face.face_id for face in person.faces] == ["ada-0", "ada-1"]
    assert count(store) == (1, 2)


def test_a_known_person_is_an_error_and_nobody_of_the_block_is_enrolled(
    store: Store, staff: Collection
) -> None:
    store.people.enroll(staff, [newcomer("ada", random_units(1, DIMENSION))])
    block = [newcomer("bob", random_units(1, DIMENSION, 1)), newcomer("ada", random_units(1, DIMENSION, 2))]
    with pytest.raises(AlreadyExists, match="ada"):
        store.people.enroll(staff, block)
    assert count(store) == (1, 1)


def test_a_person_who_may_exist_gets_more_faces(store: Store, staff: Collection) -> None:
    one, two = random_units(2, DIMENSION)
    store.people.enroll(staff, [newcomer("ada", one[None])])
    store.people.enroll(staff, [NewPerson("ada", [NewFace("second", two)], may_exist=True)])
    assert faces_of(store, staff, "ada") == ["ada-0", "second"]


def test_a_person_who_must_exist_is_not_made_again(store: Store, staff: Collection) -> None:
    """Between the look at a photo and the write of its face the person may have been deleted."""
    [values] = random_units(1, DIMENSION)
    with pytest.raises(PersonNotFound):
        store.people.enroll(staff, [NewPerson("ada", [NewFace("first", values)], must_exist=True)])
    store.people.enroll(staff, [newcomer("ada", values[None])])
    store.people.enroll(staff, [NewPerson("ada", [NewFace("second", values)], must_exist=True)])
    assert faces_of(store, staff, "ada") == ["ada-0", "second"]


def test_any_number_of_threads_may_look_read_and_write(store: Store, staff: Collection) -> None:
    together = threading.Barrier(40)

    def use(number: int) -> int:
        together.wait()
        store.collections.get("staff")
        store.people.page(staff, 1)
        store.people.enroll(staff, [newcomer(f"p{number}", random_units(1, DIMENSION, number))])
        together.wait()
        return number

    with ThreadPoolExecutor(40) as threads:
        assert list(threads.map(use, range(40), timeout=25)) == list(range(40))
    assert count(store) == (40, 40)


def test_an_error_of_the_database_quotes_nobody(store: Store, staff: Collection) -> None:
    twice = [NewFace("same", values) for values in random_units(2, DIMENSION)]
    with pytest.raises(AlreadyExists) as raised:
        store.people.enroll(staff, [NewPerson("ada", twice, "Ada Lovelace", {"secret": 1})])
    assert "Lovelace" not in str(raised.value.__cause__)
    assert "hidden" in str(raised.value.__cause__)


def test_people_are_listed_in_pages(store: Store, staff: Collection) -> None:
    store.people.enroll(
        staff, [newcomer(f"p{number}", random_units(1, DIMENSION, number)) for number in range(5)]
    )
    first = store.people.page(staff, 3)
    rest = store.people.page(staff, 3, first[-1].person_id)
    assert [person.person_id for person in first + rest] == ["p0", "p1", "p2", "p3", "p4"]


def test_a_person_is_renamed_and_forgotten(store: Store, staff: Collection) -> None:
    store.people.enroll(staff, [newcomer("ada", random_units(1, DIMENSION))])
    store.people.update(staff, "ada", {"name": "Ada L."})
    assert store.people.get(staff, "ada").name == "Ada L."
    store.people.delete(staff, "ada")
    for action in (store.people.get, store.people.delete):
        with pytest.raises(PersonNotFound):
            action(staff, "ada")
    assert count(store) == (0, 0)


def test_one_face_is_forgotten(store: Store, staff: Collection) -> None:
    store.people.enroll(staff, [newcomer("ada", random_units(2, DIMENSION))])
    store.people.delete_face(staff, "ada", "ada-0")
    assert faces_of(store, staff, "ada") == ["ada-1"]
    with pytest.raises(FaceNotFound):
        store.people.delete_face(staff, "ada", "ada-0")


def test_the_counts_are_those_of_the_rows(store: Store, staff: Collection) -> None:
    store.people.enroll(
        staff, [newcomer(f"p{number}", random_units(3, DIMENSION, number)) for number in range(6)]
    )
    store.people.enroll(
        staff, [NewPerson("p0", [NewFace("more", random_units(1, DIMENSION)[0])], may_exist=True)]
    )
    store.people.delete(staff, "p1")
    store.people.delete_face(staff, "p2", "p2-1")
    with pytest.raises(AlreadyExists):
        store.people.enroll(
            staff, [newcomer("p9", random_units(1, DIMENSION)), newcomer("p0", random_units(1, DIMENSION))]
        )
    with store._database.reading() as connection:
        rows = [
            connection.exec_driver_sql(f"SELECT count(*) FROM {name}").scalar_one()
            for name in ("people", "faces")
        ]
    assert count(store) == tuple(rows) == (5, 15)


def test_every_change_gets_the_next_number(store: Store, staff: Collection) -> None:
    embeddings = random_units(2, DIMENSION)
    store.people.enroll(staff, [newcomer("ada", embeddings)])
    store.people.update(staff, "ada", {"name": "Ada"})
    store.people.delete_face(staff, "ada", "ada-0")
    with store._database.reading() as connection:
        log = connection.exec_driver_sql("SELECT sequence, kind FROM changes ORDER BY sequence").all()
    assert log == [(1, "enrol"), (2, "enrol"), (3, "update"), (4, "delete")]
    [changes] = store.changes.since(staff, 0)
    assert (changes.sequence, len(changes.gone)) == (4, 1)
    np.testing.assert_array_equal(changes.came.embeddings, embeddings[1:])  # the first is gone
    assert store.collections.get("staff").revision == 4
    [last] = store.changes.since(staff, 3)
    assert (last.sequence, len(last.came.faces), len(last.gone)) == (4, 0, 1)
    assert list(store.changes.since(staff, 4)) == []


def test_a_long_sequence_comes_in_pieces(
    store: Store, staff: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes_module, "ROWS_AT_ONCE", 3)
    embeddings = random_units(8, DIMENSION)
    store.people.enroll(staff, [newcomer("ada", embeddings)])
    pieces = list(store.changes.since(staff, 0))
    assert [piece.sequence for piece in pieces] == [3, 6, 8]
    np.testing.assert_array_equal(np.concatenate([piece.came.embeddings for piece in pieces]), embeddings)
    blocks = list(store.changes.all_faces(staff))
    np.testing.assert_array_equal(np.concatenate([block.embeddings for block in blocks]), embeddings)


def test_a_frozen_store_shows_one_moment_to_its_thread_and_goes_on_for_others(
    store: Store, staff: Collection
) -> None:
    store.people.enroll(staff, [newcomer("ada", random_units(1, DIMENSION))])

    def look() -> tuple[object, ...]:
        now = store.collections.get("staff")
        [changes] = store.changes.since(now, 0)
        found = len(store.people.page(now, 10)), changes.sequence, list(store.people.owners_of([1, 2]))
        return now.revision, now.people, *found

    with store.frozen(), ThreadPoolExecutor(1) as another:
        before = look()
        another.submit(store.people.enroll, staff, [newcomer("bob", random_units(1, DIMENSION, 1))]).result()
        assert look() == before == (1, 1, 1, 1, [1])
        assert another.submit(look).result() == (2, 2, 2, 2, [1, 2])
    assert look() == (2, 2, 2, 2, [1, 2])


def test_an_answer_is_remembered_with_the_write_it_belongs_to(store: Store, staff: Collection) -> None:
    answered = RememberedResponse("key-1", "hash", {"person_id": "ada"})
    store.people.enroll(staff, [newcomer("ada", random_units(1, DIMENSION))], [answered])
    assert store.idempotency_keys.find(staff, ["key-1", "key-2"]) == {"key-1": answered}
    with pytest.raises(AlreadyExists):
        store.people.enroll(
            staff, [newcomer("ada", random_units(1, DIMENSION))], [RememberedResponse("key-3", "hash", {})]
        )
    assert store.idempotency_keys.find(staff, ["key-3"]) == {}
    again = store.people.enroll(staff, [newcomer("eve", random_units(1, DIMENSION))], [answered])
    assert again == {"key-1": answered}
    assert count(store) == (1, 1)  # nobody twice


def test_a_full_disk_is_said_and_leaves_nothing_half_written(store: Store, staff: Collection) -> None:
    store.people.enroll(staff, [newcomer("ada", random_units(1, DIMENSION))])
    with store._database.writing() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
    many = [newcomer(f"p{number}", random_units(5, DIMENSION, number)) for number in range(200)]
    with pytest.raises(StorageFull):
        store.people.enroll(staff, many)
    assert count(store) == (1, 1)
    assert faces_of(store, staff, "ada") == ["ada-0"]


def test_a_gallery_from_the_future_is_refused(tmp_path: Path) -> None:
    Store(tmp_path / "gallery.db").close()
    with sqlite3.connect(tmp_path / "gallery.db") as connection:
        connection.execute("UPDATE about SET value = ? WHERE key = 'version'", (str(VERSION + 1),))
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
        for column in ("draft_of", "draft"):
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
        for column in ("draft_of", "draft"):
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
