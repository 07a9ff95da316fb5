"""The commands about the audit, run as a user runs them."""

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from sameface.model.store.store import Store
from tests.model.people import newcomer, random_units
from tests.model.store.staff import BINDING, DIMENSION
from tests.postgres_server import connect_to, gallery_in

Command = Callable[..., "CompletedProcess[str]"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A data folder with a person who was enrolled and forgotten."""
    with closing(Store(gallery_in(tmp_path / "home"))) as store:
        staff, _ = store.collections.create("staff", BINDING)
        store.people.enroll(staff, [newcomer("ada", random_units(1, DIMENSION))])
        store.people.delete(staff, "ada")
    return tmp_path / "home"


@pytest.fixture
def audit(run: Command, home: Path) -> Command:
    """Runs `sameface audit` on the data folder."""
    return lambda *words: run("audit", *words, SAMEFACE_DATA=str(home))


def test_an_audit_is_exported_and_both_are_verified(audit: Command, tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    first = json.loads(audit("verify", "--json").stdout)
    assert (first["entries"], first["seals"], first["unsealed"], first["faults"]) == (3, 0, 3, [])
    assert json.loads(audit("export", file, "--json").stdout)["entries"] == 3
    again = audit("export", file, "--json")
    assert (again.returncode, json.loads(again.stdout)["code"]) == (2, "audit_refused")
    assert audit("export", file, "--replace").returncode == 0
    verified = audit("verify", file)
    assert (verified.returncode, "The audit is sound: 3 entries, 1 seal," in verified.stdout) == (0, True)
    assert audit("verify").returncode == 0
    entries = [json.loads(line) for line in file.read_text().splitlines()][:3]
    assert [entry["action"] for entry in entries] == ["create_collection", "enroll_person", "forget_person"]
    assert {entry["caller"] for entry in entries} == {"local"}


def test_a_forgery_is_said_and_ends_with_1(audit: Command, home: Path, tmp_path: Path) -> None:
    audit("export", tmp_path / "audit.jsonl")
    with connect_to(gallery_in(home)) as connection, connection:
        connection.execute("DELETE FROM audit WHERE action = 'forget_person'")
    forged = audit("verify")
    assert forged.returncode == 1
    assert "not as it was written" in forged.stdout
    text = (tmp_path / "audit.jsonl").read_text()
    (tmp_path / "audit.jsonl").write_text(text.replace("forget_person", "update_person"))
    assert audit("verify", tmp_path / "audit.jsonl").returncode == 1


def test_old_entries_are_pruned(audit: Command) -> None:
    assert json.loads(audit("prune", "--days", 30, "--json").stdout) == {"deleted": 0, "kept": 3}
    assert json.loads(audit("prune", "--days", 0, "--json").stdout) == {"deleted": 3, "kept": 0}
    assert audit("verify").returncode == 0


def test_a_key_that_is_too_short_is_refused(run: Command, home: Path, tmp_path: Path) -> None:
    variables = {"SAMEFACE_DATA": str(home), "SAMEFACE_SECRET_KEY": "short"}
    refused = run("audit", "export", tmp_path / "audit.jsonl", "--json", **variables)
    assert (refused.returncode, json.loads(refused.stdout)["code"]) == (2, "secret_key_refused")
    assert not (tmp_path / "audit.jsonl").exists()
