"""Whatever is done to the audit behind its back is found."""

import time
from collections.abc import Callable
from contextlib import closing

import pytest

from sameface.model.access.audit.check_audit import check_audit
from sameface.model.access.audit.seals import cut_audit, seal_audit
from sameface.model.data_folder import folder_of
from sameface.model.errors import SecretKeyRefused
from sameface.model.store.access.audit import Entry
from sameface.model.store.records import Collection
from sameface.model.store.store import Store
from tests.model.people import newcomer, random_units
from tests.model.store.staff import BINDING, DIMENSION
from tests.postgres_server import connect_to


@pytest.fixture
def audited(store: Store, staff: Collection) -> Store:
    """A store with two chains, two seals and entries after the second."""
    for number in range(3):
        store.people.enroll(staff, [newcomer(f"p{number}", random_units(1, DIMENSION, number))])
    with closing(Store(store.place)) as other:  # another process's chain
        other.collections.create("guests", BINDING)
        other.people.update(staff, "p0", {"name": "Ada"})
    seal_audit(store)
    store.people.delete(staff, "p1")
    match = Entry.about(staff, "identify", outcome="match", similarity=1, threshold=0.3)
    store.audit.record([match.to_columns()])
    seal_audit(store)
    store.people.delete_face(staff, "p2", "p2-0")
    store.people.delete(staff, "p2")
    return store


def tamper(store: Store, statement: str) -> None:
    with connect_to(store.place) as connection, connection:
        assert connection.execute(statement).rowcount > 0


def test_an_honest_audit_has_no_faults(audited: Store) -> None:
    verdict = check_audit(audited)
    assert verdict.faults == []
    assert (verdict.entries, verdict.seals, verdict.last_seal, verdict.unsealed) == (10, 2, 2, 2)


FORGERIES = {
    "an altered caller": "UPDATE audit SET caller = 'mallory' WHERE key = 3",
    "an altered time": "UPDATE audit SET time = time + 1 WHERE key = 10",
    "an altered detail": """UPDATE audit SET details = '{"faces": 2}' WHERE action = 'forget_person'""",
    "a removed entry": "DELETE FROM audit WHERE key = 2",
    "the removed first entry": "DELETE FROM audit WHERE key = 1",
    "the removed last entry": "DELETE FROM audit WHERE key = 10",
    "a removed chain": "DELETE FROM audit WHERE chain = (SELECT chain FROM audit WHERE key = 5)",
    "two entries in each other's place": "UPDATE audit SET number = CASE key WHEN 2 THEN -3 ELSE -2 END"
    " WHERE key IN (2, 3); UPDATE audit SET number = -number WHERE number < 0",
    "an added entry": "INSERT INTO audit SELECT 99, 'x', 1, time, started_at, action, outcome, caller,"
    " request_id, route, collection, revision, person_id, model, similarity, threshold, reviewed, details,"
    " hash FROM audit WHERE key = 1",
    "a removed seal": "DELETE FROM seals WHERE number = 1",
    "an altered seal": "UPDATE seals SET time = time + 1 WHERE number = 2",
    "a forged cut": "UPDATE seals SET is_cut = true WHERE number = 1",
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_is_found(audited: Store, name: str) -> None:
    for statement in FORGERIES[name].split("; "):
        tamper(audited, statement)
    assert check_audit(audited).faults


def test_a_whole_chain_that_was_hashed_anew_is_found_by_its_seal(audited: Store) -> None:
    """Whoever can write the database can compute hashes, but not sign them."""
    tamper(audited, "UPDATE audit SET hash = hash || 'f' WHERE key = 4")
    tamper(audited, "UPDATE audit_chains SET hash = hash || 'f'")
    assert any("seal 1" in fault or "altered" in fault for fault in check_audit(audited).faults)


def test_another_secret_key_does_not_verify(audited: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAMEFACE_SECRET_KEY", "x" * 40)
    assert "not signed with this secret key" in check_audit(audited).faults[0]


def test_a_lost_key_is_said_and_not_made_anew(audited: Store) -> None:
    path = folder_of(audited.place) / "secret.key"
    path.unlink()
    with pytest.raises(SecretKeyRefused):
        check_audit(audited)
    assert not path.exists()


Later = Callable[[float], None]


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Later:
    """Sets the clock of the seals ahead by some days."""
    now = time.time()
    return lambda days: monkeypatch.setattr(
        "sameface.model.access.audit.seals.time.time", lambda: now + days * 86_400
    )


def test_what_is_left_after_a_cut_still_verifies_and_goes_on(
    audited: Store, staff: Collection, later: Later
) -> None:
    later(10)
    seal_audit(audited)
    later(12)
    assert cut_audit(audited, 5) == 8  # of the two seals of now; the third is two days old
    verdict = check_audit(audited)
    assert (verdict.faults, verdict.entries, verdict.seals) == ([], 2, 2)
    audited.people.update(staff, "p0", {"name": "Bea"})
    seal_audit(audited)
    assert cut_audit(audited, 5) == 0
    later(30)
    assert cut_audit(audited, 5) == 3
    verdict = check_audit(audited)
    assert (verdict.faults, verdict.entries, verdict.seals, verdict.last_seal) == ([], 0, 1, 4)
    audited.people.update(staff, "p0", {"name": "Cea"})  # its chain had nothing left, and a new one begins
    seal_audit(audited)
    assert (check_audit(audited).faults, check_audit(audited).entries) == ([], 1)


def test_a_cut_takes_many_entries_in_several_transactions(
    store: Store, staff: Collection, later: Later, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sameface.model.store.access.seals.ROWS_AT_ONCE", 4)
    for _ in range(5):
        store.audit.record([Entry.about(staff, "verify").to_columns() for _ in range(3)])
        seal_audit(store)
    later(9)
    assert cut_audit(store, 1) == 16
    assert (check_audit(store).faults, check_audit(store).seals) == ([], 1)


def test_an_entry_forged_into_what_was_cut_is_found(audited: Store, later: Later) -> None:
    later(9)
    cut_audit(audited, 1)
    tamper(audited, "UPDATE audit SET number = number - 1 WHERE number = (SELECT MIN(number) FROM audit)")
    assert check_audit(audited).faults
