"""Scopes, secrets and the entries of the environment."""

import time

import pytest

from sameface.model.access.keys import draft_key, find_fault, hash_secret, parse_entry, write_entry
from sameface.model.errors import InvalidArgument
from sameface.model.store.access.api_key import ApiKey, KeyLimits

HASH = hash_secret("sf_secret")


def test_an_entry_has_the_scopes_that_it_names() -> None:
    key = parse_entry(write_entry("door", "sf_secret", ["search", "read"]))
    assert (key.name, key.sha256, key.scopes) == ("door", HASH, {"read", "search"})
    assert key.key_id == f"environment-{HASH[:8]}"


@pytest.mark.parametrize(
    ("scopes", "meant"),
    [
        ("read", {"read", "search"}),
        ("write", {"write", "admin"}),
        ("read+write", {"read", "search", "write", "admin"}),
    ],
)
def test_an_old_entry_means_what_it_meant(scopes: str, meant: set[str]) -> None:
    assert parse_entry(f"{HASH}:{scopes}").scopes == meant


@pytest.mark.parametrize(
    "entry",
    ["", "secret", HASH, f"{HASH}:admin", f"{HASH.upper()}:read", f"a b:{HASH}:read", f"door:{HASH}:all"],
)
def test_an_entry_that_is_no_hash_with_scopes_is_refused(entry: str) -> None:
    with pytest.raises(ValueError, match="sha256"):
        parse_entry(entry)


def test_a_name_that_would_break_the_entry_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="letters"):
        write_entry("front door", "sf_secret", ["read"])


def key_of(*collections: str, scopes: str = "read") -> ApiKey:
    return draft_key("sf_secret", "test", scopes.split("+"), collections or None)


@pytest.mark.parametrize(
    ("places", "seen", "unseen"),
    [
        ((), ["a", "b"], []),
        (("a",), ["a"], ["A", "ab", "b"]),
        (("a*", "c"), ["a", "ab", "c"], ["ba", "cc", "A"]),
        (("*",), ["a", "b"], []),
    ],
)
def test_a_key_touches_the_names_and_prefixes_that_it_has(
    places: tuple[str, ...], seen: list[str], unseen: list[str]
) -> None:
    key = key_of(*places)
    assert [name for name in seen + unseen if key.may_touch(name)] == seen


@pytest.mark.parametrize(
    ("wide", "narrow", "covered"),
    [
        ((), ("a",), True),
        ((), (), True),
        (("*",), (), False),
        (("a*",), ("a*",), True),
        (("a*",), ("ab*", "a"), True),
        (("ab*",), ("a*",), False),
        (("a",), ("a*",), False),
        (("a",), ("a", "b"), False),
    ],
)
def test_a_key_covers_what_lies_within_its_collections(
    wide: tuple[str, ...], narrow: tuple[str, ...], covered: bool
) -> None:
    assert key_of(*wide).covers(key_of(*narrow)) is covered
    assert not key_of(*wide).covers(key_of(*narrow, scopes="read+write"))


@pytest.mark.parametrize("limit", [0, -1, 10**10])
def test_a_limit_that_would_allow_nothing_is_refused(limit: int) -> None:
    for name in ("requests_per_minute", "photos_per_minute", "concurrent", "faces"):
        with pytest.raises(InvalidArgument, match=name):
            draft_key("sf_secret", "test", ["read"], limits=KeyLimits(**{name: limit}))


def test_a_key_is_valid_until_it_expires() -> None:
    now = time.time()
    key = draft_key("sf_secret", "test", ["read"], expires_at=now + 10)
    assert find_fault(key, HASH, now) is None
    assert "expired" in find_fault(key, HASH, now + 10)
    with pytest.raises(InvalidArgument, match="future"):
        draft_key("sf_secret", "test", ["read"], expires_at=now - 1)
