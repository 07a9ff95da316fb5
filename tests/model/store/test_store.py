"""The store: collections, people and their faces, their changes, and the responses that retries get."""

import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from sameface.model.errors import AlreadyExists, CollectionNotFound, FaceNotFound, PersonNotFound
from sameface.model.store import changes as changes_module
from sameface.model.store.records import Collection, NewFace, NewPerson, RememberedResponse
from sameface.model.store.store import Store
from tests.model.people import newcomer, random_units
from tests.model.store.staff import BINDING, DIMENSION, count, faces_of


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
    ada = NewPerson("ada", twice, "Ada Lovelace", {"secret": 1})
    with pytest.raises(AlreadyExists) as raised:
        store.people.enroll(staff, [ada])
    assert "Lovelace" not in "".join(traceback.format_exception(raised.value))


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
    [changes] = store.changes.since(staff, 0)  # all that is there
    assert (changes.sequence, len(changes.gone)) == (4, 0)
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
    assert [piece.sequence for piece in pieces] == [0, 0, 8]
    assert [piece.sequence for piece in store.changes.since(staff, 1)] == [4, 7, 8]
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
        _, owners = store.lookups.owners_of(now, [1, 2])
        found = len(store.people.page(now, 10)), changes.sequence, sorted(owners)
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
