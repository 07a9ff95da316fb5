"""Limits of a minute hold over all machines that share a store: each has a data folder of its own."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from sameface.model.access.limits.limits import Allowance, Limits
from sameface.model.errors import RateLimited
from sameface.model.store.access import leases as leases_module
from sameface.model.store.access.api_key import ApiKey, KeyLimits
from sameface.model.store.store import Store
from tests.model.access.limits.test_limits import key_of
from tests.postgres_server import gallery_in


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(gallery_in(tmp_path))) as store:
        yield store


@pytest.fixture
def machines(store: Store, tmp_path: Path) -> Iterator[list[Limits]]:
    """Two machines, the second with two processes."""
    made = [Limits(tmp_path / folder / "limits") for folder in ("one", "two", "two")]
    for limits in made:
        limits.share(store.leases)
        limits.allowance_of(key_of(requests_per_minute=1))  # opens its counters
    yield made
    for limits in made:
        limits.close()


def take(allowance: Allowance, what: str, count: int) -> bool:
    """Whether so many could be taken."""
    try:
        if not allowance.try_reserve(what, count):
            allowance.reserve(what, count)
        if what == "requests":
            allowance.enter().leave()
        else:
            allowance.take_photos(count)
    except RateLimited as refused:
        return not refused.facts["retry_after_seconds"]  # it is said when to come back
    return True


def test_all_machines_together_get_the_limit_and_no_more(machines: list[Limits]) -> None:
    key = key_of(requests_per_minute=60)
    with ThreadPoolExecutor(9) as threads:
        taken = list(
            threads.map(lambda n: take(machines[n % 3].allowance_of(key), "requests", 1), range(150))
        )
    assert 60 - 2 * 60 // leases_module.PARTS <= sum(taken) <= 60  # a machine may hold a part


def test_one_machine_alone_gets_all_of_it(machines: list[Limits]) -> None:
    allowance = machines[0].allowance_of(key_of(photos_per_minute=30))
    assert take(allowance, "photos", 7)
    assert sum(take(allowance, "photos", 1) for _ in range(40)) == 23


def test_most_requests_do_not_ask_the_store(
    machines: list[Limits], store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    lease = store.leases.take
    monkeypatch.setattr(store.leases, "take", lambda *about: asked.append(about) or lease(*about))
    allowance = machines[0].allowance_of(key_of(requests_per_minute=1_000))
    assert all(take(allowance, "requests", 1) for _ in range(200))
    assert len(asked) == 4


def test_what_a_machine_does_not_use_is_given_back(
    machines: list[Limits], monkeypatch: pytest.MonkeyPatch
) -> None:
    key = key_of(photos_per_minute=100)
    assert take(machines[0].allowance_of(key), "photos", 1)  # and has leased 5
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + leases_module.LEASE_SECONDS + 1)
    assert take(machines[0].allowance_of(key), "photos", 1)
    assert sum(take(machines[1].allowance_of(key), "photos", 1) for _ in range(100)) == 94


def test_a_minute_later_there_is_a_new_one(machines: list[Limits], store: Store) -> None:
    key = key_of(photos_per_minute=10)
    assert take(machines[0].allowance_of(key), "photos", 10)
    assert not take(machines[1].allowance_of(key), "photos", 1)
    with store.writing() as connection:
        connection.exec_driver_sql(f"UPDATE leases SET taken_at = taken_at - {leases_module.SPAN_SECONDS}")
    assert take(machines[1].allowance_of(key), "photos", 10)


def test_all_callers_together_have_a_limit_over_all_machines(store: Store, tmp_path: Path) -> None:
    everybody = KeyLimits(requests_per_minute=20)
    made = [Limits(tmp_path / folder / "limits", everybody) for folder in ("one", "two")]
    taken = 0
    for number in range(60):
        made[number % 2].share(store.leases)
        key: ApiKey | None = key_of(1 + number % 5, requests_per_minute=50) if number % 3 else None
        taken += take(made[number % 2].allowance_of(key), "requests", 1)
    assert 16 <= taken <= 20
    for limits in made:
        limits.close()
