"""Every change is in the audit, in its own transaction."""

import json
from datetime import datetime

import pytest

from sameface.model.actor import Actor, acting
from sameface.model.errors import AlreadyExists, EntryNotFound, StorageFull
from sameface.model.store.access.audit import Entry, StoredEntry, Wanted
from sameface.model.store.drafts import open_draft, publish_draft
from sameface.model.store.records import Collection, NewFace, NewPerson, write_time
from sameface.model.store.store import Store
from tests.model.people import newcomer, random_units
from tests.model.store.full_disk import leave_no_room
from tests.model.store.staff import BINDING, DIMENSION


def read(store: Store, **wanted: str | float) -> list[StoredEntry]:
    """The entries, oldest first."""
    return store.audit.page(Wanted(**wanted), 1000)[::-1]


def test_every_change_is_an_entry_with_who_asked_for_it(store: Store, staff: Collection) -> None:
    with acting(Actor("key-7", "r1", "/v1/collections/{collection}/people")):
        store.people.enroll(staff, [newcomer("ada", random_units(2, DIMENSION))])
    more = NewPerson("ada", [NewFace("more", random_units(1, DIMENSION, 3)[0])], may_exist=True)
    store.people.enroll(staff, [more])
    store.people.update(staff, "ada", {"name": "Ada"})
    store.people.delete_face(staff, "ada", "ada-0")
    store.people.delete(staff, "ada")
    store.calibrations.save("abc", "own", {}, replacing=False)
    store.calibrations.choose("abc", "own")
    store.calibrations.remove("abc", "own")
    store.collections.delete("staff")
    entries = [each.entry for each in read(store)]
    assert [(each.action, each.person_id, each.revision) for each in entries] == [
        ("create_collection", None, 0),
        ("enroll_person", "ada", 2),
        ("add_faces", "ada", 3),
        ("update_person", "ada", 4),
        ("forget_face", "ada", 5),
        ("forget_person", "ada", 7),
        ("save_calibration", None, None),
        ("choose_calibration", None, None),
        ("remove_calibration", None, None),
        ("delete_collection", None, 7),
    ]
    assert entries[1].actor == Actor("key-7", "r1", "/v1/collections/{collection}/people")
    assert {each.actor.caller for each in entries[2:]} == {"local"}
    assert {each.model for each in entries if each.collection} == {"tiny"}


def test_an_entry_has_no_name_metadata_or_embedding(store: Store, staff: Collection) -> None:
    store.people.enroll(staff, [newcomer("ada", random_units(1, DIMENSION))])
    store.people.update(staff, "ada", {"name": "Ada Lovelace", "metadata": {"desk": "by the window"}})
    written = json.dumps([each.describe() for each in read(store)])
    assert "Lovelace" not in written
    assert "window" not in written
    assert "embedding" not in written


def test_an_import_is_one_entry_when_it_is_published(store: Store) -> None:
    draft = open_draft(store, "copy", "importing", BINDING)
    store.people.enroll(draft, [newcomer("ada", random_units(2, DIMENSION))])
    assert read(store) == []
    publish_draft(store, draft)
    [entry] = [each.entry for each in read(store)]
    assert (entry.action, entry.collection, entry.details) == (
        "import_collection",
        "copy",
        {"people": 1, "faces": 2},
    )


def test_a_change_that_fails_leaves_no_entry_and_no_gap(store: Store, staff: Collection) -> None:
    store.people.enroll(staff, [newcomer("ada", random_units(1, DIMENSION))])
    with pytest.raises(AlreadyExists):
        store.people.enroll(staff, [newcomer("ada", random_units(1, DIMENSION, 2))])
    store.people.delete(staff, "ada")
    entries = read(store)
    assert [each.entry.action for each in entries] == ["create_collection", "enroll_person", "forget_person"]
    assert [each.number for each in entries] == [1, 2, 3]


def rename_often(store: Store, staff: Collection) -> None:
    for number in range(1000):
        store.people.update(staff, "ada", {"name": f"n{number}"})


@pytest.mark.sqlite  # whose file alone can be given a size
def test_a_change_is_refused_if_there_is_no_room_for_its_entry(store: Store, staff: Collection) -> None:
    store.people.enroll(staff, [newcomer("ada", random_units(1, DIMENSION))])
    leave_no_room(store)
    with pytest.raises(StorageFull):
        rename_often(store, staff)
    entries = read(store, person_id="ada")
    name = store.people.get(staff, "ada").name
    assert name == f"n{len(entries) - 2}"  # as many updates as entries, besides the enrolment


def test_entries_are_found_by_time_caller_person_collection_and_request(
    store: Store, staff: Collection
) -> None:
    with acting(Actor("gate", "r1")):
        store.audit.record([Entry.about(staff, "identify", person_id="ada", time=100.0).to_columns()])
    with acting(Actor("door", "r2")):
        store.audit.record([Entry(action="verify", time=200.0).to_columns()])
    for wanted in ({"caller": "gate"}, {"person_id": "ada"}, {"request_id": "r1"}, {"until": 150.0}):
        assert [each.entry.action for each in read(store, **wanted)] == ["identify"], wanted
    assert [each.entry.action for each in read(store, since=150.0, until=250.0)] == ["verify"]
    assert [each.entry.action for each in read(store, collection="staff")] == [
        "create_collection",
        "identify",
    ]


def test_the_time_that_an_entry_shows_is_the_one_it_has() -> None:
    for entry in [Entry(action="verify") for _ in range(100)]:
        assert datetime.fromisoformat(write_time(entry.time)).timestamp() == entry.time


def test_pages_go_from_the_newest_back(store: Store) -> None:
    store.audit.record([Entry(action="verify", details={"n": number}).to_columns() for number in range(5)])
    first = store.audit.page(Wanted(), 2)
    second = store.audit.page(Wanted(), 10, before=first[-1].key)
    assert [each.entry.details["n"] for each in first + second] == [4, 3, 2, 1, 0]


@pytest.mark.usefixtures("staff")
def test_an_unknown_entry_is_not_found(store: Store) -> None:
    [entry] = read(store)
    assert store.audit.get(entry.entry_id) == entry
    for wrong in ("", "x", f"{entry.chain}.2", f"{entry.chain}.-1", f"{entry.chain}.9999999999999999999999"):
        with pytest.raises(EntryNotFound):
            store.audit.get(wrong)
