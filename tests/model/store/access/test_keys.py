"""API keys in the store."""

import time
from contextlib import closing

import pytest

from sameface.model.access.keys import find_fault
from sameface.model.errors import KeyNotFound
from sameface.model.store.access.api_key import KeyLimits
from sameface.model.store.store import Store
from tests.api.keys import add_key
from tests.model.store.staff import BINDING
from tests.postgres_server import connect_to


def test_a_key_is_read_as_it_was_written(store: Store) -> None:
    limits = KeyLimits(photos_per_minute=60, faces=3)
    later = time.time() + 1000
    _, key = add_key(
        store, "read", "search", collections=["a", "b-*"], limits=limits, expires_at=later, name="Tür"
    )
    assert store.keys.get(key.key_id) == key
    assert (key.scopes, key.collections, key.limits) == ({"read", "search"}, ("a", "b-*"), limits)
    assert (key.expires_at, key.name, key.revoked_at, key.last_used_at) == (later, "Tür", None, None)


@pytest.mark.sqlite
def test_the_secret_is_nowhere_in_the_database(store: Store) -> None:
    secret, _ = add_key(store, "read")
    store.close()
    files = list(store.place.parent.glob("gallery.db*"))
    assert not any(secret.encode() in path.read_bytes() for path in files)


def test_every_change_counts_and_a_use_does_not(store: Store) -> None:
    assert store.keys.revision == 0
    _, key = add_key(store, "read")
    store.keys.rotate(key.key_id, "a" * 64, 0)
    store.keys.note_used([key.key_id], time.time())
    store.keys.revoke(key.key_id)
    assert store.keys.revoke(key.key_id).revoked_at
    assert store.keys.revision == 3


def test_a_former_secret_ends_alike_on_machines_whose_clocks_differ(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, key = add_key(store, "read")
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 3600)
    grace = store.keys.rotate(key.key_id, "a" * 64, 60)
    assert grace.former_until == pytest.approx(now + 60, abs=30)
    leaked = store.keys.rotate(key.key_id, "b" * 64, 0)
    assert "rotated" in (find_fault(leaked, "a" * 64, now - 3600) or "")


def test_the_last_use_never_goes_back_when_the_clock_does(store: Store) -> None:
    _, key = add_key(store, "read")
    for now, kept in ((7205.0, 7200.0), (3700.0, 7200.0), (10_900.0, 10_800.0)):
        store.keys.note_used([key.key_id], now)
        assert store.keys.get(key.key_id).last_used_at == kept


def test_a_key_that_is_unknown_or_revoked_is_not_rotated(store: Store) -> None:
    _, key = add_key(store, "read")
    store.keys.revoke(key.key_id)
    for key_id in (key.key_id, "nobody"):
        with pytest.raises(KeyNotFound):
            store.keys.rotate(key_id, "a" * 64, 0)


def test_collections_are_listed_by_names_and_prefixes(store: Store) -> None:
    for name in ("a_1", "ab1", "A_2", "b", "ba"):
        store.collections.create(name, BINDING)

    def names(*within: str) -> list[str]:
        return [each.name for each in store.collections.page(within=within)]

    assert names("a_*") == ["a_1"]
    assert names("b", "A*") == ["A_2", "b"]
    assert names("*") == ["A_2", "a_1", "ab1", "b", "ba"]
    assert [each.name for each in store.collections.page(1, "a_1", ("a*",))] == ["ab1"]


def test_a_gallery_of_version_7_gets_the_columns_of_version_8(store: Store) -> None:
    _, key = add_key(store, "read")
    store.close()
    with connect_to(store.place) as connection:
        for table, column in (("keys", "sealed"), ("keys", "former_sealed"), ("faces", "details")):
            connection.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        connection.execute("UPDATE about SET value = '7' WHERE key = 'version'")
        connection.commit()
    with closing(Store(store.place)) as upgraded:
        assert upgraded.keys.get(key.key_id) == key
        assert upgraded.keys.rotate(key.key_id, "a" * 64, 0, "sealed").sealed == "sealed"
