"""`sameface keys`: it needs a data folder and no networks."""

import json
from contextlib import closing
from pathlib import Path
from uuid import UUID

import pytest

from sameface.model.access.keys import hash_secret, parse_entry
from sameface.model.access.sealed_secrets import open_secrets
from sameface.model.store.store import Store
from tests.postgres_server import gallery_in


@pytest.fixture
def keys(run, tmp_path: Path):
    """Runs `sameface keys` on an empty data folder."""
    return lambda *words: run("keys", *words, "--data", tmp_path / "data")


def made_by(done) -> dict:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_key_is_made_listed_shown_rotated_and_revoked(keys) -> None:
    words = ("--name", "door", "--scope", "read", "--scope", "search", "--collection", "staff")
    made = made_by(keys("create", *words, "--expires", "30d", "--photos-per-minute", "60", "--json"))
    assert made["secret"].startswith("sf_")
    assert (made["scopes"], made["collections"]) == (["read", "search"], ["staff"])
    assert made["limits"]["photos_per_minute"] == 60
    [listed] = made_by(keys("list", "--json"))["items"]
    assert listed == made_by(keys("show", made["key_id"], "--json"))
    assert listed == {name: value for name, value in made.items() if name != "secret"}
    rotated = made_by(keys("rotate", made["key_id"], "--grace", "60", "--json"))
    assert rotated["secret"] != made["secret"]
    assert rotated["former_until"]
    assert made_by(keys("revoke", made["key_id"], "--json"))["revoked_at"]
    assert "revoked" in keys("list").stdout


def test_people_see_what_was_done(keys) -> None:
    assert "keys create" in keys("list").stdout
    said = keys("create", "--name", "door", "--scope", "read+write").stdout
    assert "Authorization: Bearer sf_" in said
    key_id = made_by(keys("list", "--json"))["items"][0]["key_id"]
    assert "door" in keys("show", key_id).stdout
    assert "works until" in keys("rotate", key_id).stdout
    assert "works no more" in keys("rotate", key_id, "--grace", "0").stdout
    assert "is revoked" in keys("revoke", key_id).stdout


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("create", "--name", "door"), "usage"),
        (("create", "--scope", "read"), "invalid_request"),
        (("create", "--name", "door", "--scope", "all"), "invalid_request"),
        (("create", "--name", "door", "--scope", "read", "--concurrent", "0"), "invalid_request"),
        (("create", "--name", "door", "--scope", "read", "--expires", "soon"), "invalid_request"),
        (("create", "--name", "door", "--scope", "read", "--expires", "2020-01-01"), "invalid_request"),
        (("create", "--name", "door", "--scope", "read", "--collection", "a b"), "invalid_request"),
        (("create", "--scope", "read", "--environment", "--faces", "3"), "invalid_request"),
        (("show", "nobody"), "key_not_found"),
        (("rotate", "nobody", "--grace", "-1"), "invalid_request"),
        (("revoke", "nobody"), "key_not_found"),
        (("create", "--name", "a", "--scope", "read", "--aws", "--environment"), "invalid_request"),
        (("create", "--name", "a", "--scope", "read", "--aws", "--compreface", "b"), "invalid_request"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(keys, words: tuple[str, ...], code: str) -> None:
    done = keys(*words, "--json")
    assert (done.returncode, json.loads(done.stdout)["code"]) == (2, code)
    assert made_by(keys("list", "--json"))["items"] == []


def test_a_key_of_the_environment_is_kept_nowhere(keys) -> None:
    made = made_by(keys("create", "--environment", "--name", "door", "--scope", "read", "--json"))
    key = parse_entry(made["entry"])
    assert (key.key_id, key.sha256) == (made["key_id"], hash_secret(made["secret"]))
    assert key.scopes == {"read"}
    assert made_by(keys("list", "--json"))["items"] == []


@pytest.mark.parametrize(
    ("words", "scopes"),
    [
        ((), {"read", "search", "write", "admin"}),
        (("--scope", "read"), {"read", "search"}),
        (("--scope=write",), {"write", "admin"}),
    ],
)
def test_new_key_still_works_and_says_what_it_is_called_now(
    run, words: tuple[str, ...], scopes: set[str]
) -> None:
    done = run("new-key", *words, "--json")
    assert parse_entry(made_by(done)["entry"]).scopes == scopes
    assert "keys create --environment" in done.stderr


def test_a_key_for_rekognition_has_an_id_and_a_secret_that_is_kept_encrypted(
    keys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAMEFACE_SECRET_KEY", "s" * 32)  # none is drawn for a gallery in PostgreSQL
    made = made_by(keys("create", "--name", "lambda", "--aws", "--scope", "search", "--json"))
    assert (made["access_key_id"], made["service"]) == (made["key_id"], "rekognition")
    with closing(Store(gallery_in(tmp_path / "data"))) as store:
        assert open_secrets(store, store.keys.get(made["key_id"])) == (made["secret"],)
        rotated = made_by(keys("rotate", made["key_id"], "--json"))
        assert open_secrets(store, store.keys.get(made["key_id"])) == (rotated["secret"], made["secret"])
    shown = keys("rotate", made["key_id"]).stdout
    assert f"aws_access_key_id {made['key_id']}" in shown
    assert "aws_secret_access_key" in shown


OWN = "1c0b7f3e-5d1e-4f0a-9a53-0c7c2f6f9a11"


def test_a_key_of_compreface_is_a_uuid_and_makes_its_collection(keys, run, tmp_path: Path) -> None:
    words = ("create", "--name", "cam", "--compreface", "family", "--scope", "search", "--json")
    made = made_by(keys(*words))
    assert str(UUID(made["secret"])) == made["secret"]
    assert (made["collections"], made["service"]) == (["family"], "compreface/recognition")
    [collection] = made_by(run("collections", "--json", "--data", tmp_path / "data"))["items"]
    assert (collection["name"], collection["people"]) == ("family", 0)
    kept = made_by(keys(*words, "--service", "detection", "--key", OWN.upper()))
    assert (kept["secret"], kept["service"]) == (OWN, "compreface/detection")
    assert UUID(made_by(keys("rotate", kept["key_id"], "--json"))["secret"]) != UUID(OWN)
    assert f"x-api-key: {OWN[:2]}" not in keys("list").stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--compreface", "family", "--key", "secret"), "no UUID"),
        (("--compreface", "family", "--key", "00000000-0000-0000-0000-000000000002"), "demo"),
        (("--compreface", "family", "--collection", "staff"), "one collection"),
        (("--compreface", "family", "--environment"), "one collection"),
        (("--compreface", "a b"), "collection"),
        (("--key", OWN), "--compreface"),
    ],
)
def test_a_senseless_key_of_compreface_is_refused(keys, words: tuple[str, ...], said: str) -> None:
    done = keys("create", "--name", "cam", "--scope", "search", *words)
    assert done.returncode == 2
    assert said in done.stderr


def test_no_two_keys_have_one_secret(keys) -> None:
    words = ("create", "--name", "cam", "--compreface", "family", "--scope", "search", "--key", OWN)
    assert keys(*words).returncode == 0
    done = keys(*words)
    assert (done.returncode, "already" in done.stderr) == (2, True)
