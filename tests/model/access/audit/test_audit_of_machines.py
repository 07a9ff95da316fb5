"""Machines that share a database write, seal, cut and review one audit at the same time."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from sameface.model.access.audit.check_audit import check_audit
from sameface.model.access.audit.decisions import Decisions
from sameface.model.access.audit.reviews import review_entry
from sameface.model.access.audit.seals import cut_audit, seal_audit
from sameface.model.data_folder import folder_of
from sameface.model.errors import AlreadyExists, SecretKeyRefused
from sameface.model.store.access.api_key import KeyLimits
from sameface.model.store.access.audit import Entry, Wanted
from sameface.model.store.records import Collection
from sameface.model.store.store import Store
from tests.api.keys import add_key
from tests.model.people import newcomer, random_units
from tests.model.store.staff import BINDING, DIMENSION
from tests.postgres_server import ON_POSTGRES


@pytest.fixture
def stores(store: Store) -> Iterator[list[Store]]:
    """Two machines."""
    with closing(Store(store.place)) as other:
        yield [store, other]


def at_once(count: int, work: Callable[[int], object]) -> list[object]:
    """What `work` returns, or the error that it raises, for 0 to `count` - 1 at the same moment."""
    together = threading.Barrier(count)

    def start(number: int) -> object:
        together.wait()
        try:
            return work(number)
        except AlreadyExists as error:
            return error

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(start, range(count)))


def test_writers_sealers_and_cutters_leave_an_audit_that_verifies(stores: list[Store]) -> None:
    rooms = [stores[0].collections.create(name, BINDING)[0] for name in ("north", "south")]

    def work(number: int) -> None:
        store, room = stores[number % 2], rooms[number // 2 % 2]
        for turn in range(12):
            if number < 6:
                name = f"p{number}-{turn}"
                store.people.enroll(room, [newcomer(name, random_units(1, DIMENSION, turn))])
                store.people.delete(room, name)
            else:
                seal_audit(store)
                if number == 7 or turn == 6:
                    cut_audit(store, 0)

    assert at_once(9, work) == [None] * 9
    assert check_audit(stores[1]).faults == []
    seal_audit(stores[0])
    verdict = check_audit(stores[1])
    assert (verdict.faults, verdict.unsealed) == ([], 0)
    assert [store.collections.get("north").people for store in stores] == [0, 0]


def test_every_entry_of_writers_at_once_is_kept(stores: list[Store], staff: Collection) -> None:
    def write(number: int) -> None:
        for turn in range(20):
            stores[number % 2].audit.record([Entry.about(staff, "verify").to_columns()] * 3)
            if turn % 5 == number % 5:
                seal_audit(stores[number % 2])

    at_once(8, write)
    seal_audit(stores[0])
    verdict = check_audit(stores[0])
    assert (verdict.faults, verdict.entries, verdict.unsealed) == ([], 8 * 20 * 3 + 1, 0)


def test_one_person_reviews_a_decision_once(stores: list[Store], staff: Collection) -> None:
    stores[0].audit.record([Entry.about(staff, "identify", outcome="match", person_id="ada").to_columns()])
    [decision] = stores[0].audit.page(Wanted(person_id="ada"), 1)
    answers = at_once(
        8, lambda number: review_entry(stores[number % 2], decision.entry_id, "grace", confirmed=True)
    )
    assert sum(not isinstance(answer, AlreadyExists) for answer in answers) == 1
    assert len(stores[0].audit.reviews_of([decision.entry_id])[decision.entry_id]) == 1


@pytest.mark.skipif(not ON_POSTGRES, reason="`make postgres` has a server")
def test_machines_must_be_given_a_secret_key(store: Store) -> None:
    path = folder_of(store.place) / "secret.key"
    path.unlink()
    with pytest.raises(SecretKeyRefused, match="SAMEFACE_SECRET_KEY"):
        Decisions(store, 365)
    assert not path.exists()


def test_every_change_of_keys_is_counted(stores: list[Store]) -> None:
    at_once(8, lambda number: add_key(stores[number % 2], "read", limits=KeyLimits()))
    assert stores[0].keys.revision == 8
    assert len(stores[1].keys.page()) == 8
