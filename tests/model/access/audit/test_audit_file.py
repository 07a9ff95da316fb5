"""An exported audit can be verified by itself, and what was done to the file is found."""

import stat
from pathlib import Path

import pytest

from sameface.model.access.audit.audit_file import check_file, export_audit
from sameface.model.access.audit.seals import seal_audit
from sameface.model.access.secret_key import load_secret_key
from sameface.model.errors import AuditRefused
from sameface.model.store.access.audit import Entry
from sameface.model.store.records import Collection
from sameface.model.store.store import Store


@pytest.fixture
def exported(store: Store, staff: Collection, tmp_path: Path) -> Path:
    """An audit of two seals: three entries, and two."""
    found = Entry.about(staff, "identify", similarity=0.1 + 0.2, started_at=0.1)
    store.audit.record([found.to_columns()] * 2)
    seal_audit(store)
    store.audit.record([Entry(action="verify").to_columns()] * 2)
    assert export_audit(store, tmp_path / "audit.jsonl") == 5
    return tmp_path / "audit.jsonl"


def check(path: Path) -> list[str]:
    return check_file(path, path.parent).faults


def test_an_export_is_for_its_owner_and_verifies(exported: Path) -> None:
    assert stat.S_IMODE(exported.stat().st_mode) == 0o600
    verdict = check_file(exported, exported.parent)
    assert (verdict.faults, verdict.entries, verdict.seals, verdict.unsealed) == ([], 5, 2, 0)


def test_an_empty_audit_is_exported_too(store: Store, tmp_path: Path) -> None:
    assert export_audit(store, tmp_path / "audit.jsonl") == 0
    assert check(tmp_path / "audit.jsonl") == []


@pytest.mark.parametrize("gone", range(8))
def test_a_removed_line_is_found(exported: Path, gone: int) -> None:
    lines = exported.read_bytes().splitlines(keepends=True)
    assert len(lines) == 8
    exported.write_bytes(b"".join(line for place, line in enumerate(lines) if place != gone))
    assert check(exported)


@pytest.mark.parametrize("kept", range(8))
def test_a_cut_file_is_found(exported: Path, kept: int) -> None:
    exported.write_bytes(b"".join(exported.read_bytes().splitlines(keepends=True)[:kept]))
    assert check(exported)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'"identify"', b'"verify"'),
        (b'"local"', b'"mallory"'),
        (b'"seal": 2', b'"seal": 3'),
        (b"staff", b"stuff"),
    ],
)
def test_an_edited_file_is_found(exported: Path, before: bytes, after: bytes) -> None:
    exported.write_bytes(exported.read_bytes().replace(before, after, 1))
    assert check(exported)


def test_lines_in_another_order_or_added_are_found(exported: Path) -> None:
    lines = exported.read_bytes().splitlines(keepends=True)
    exported.write_bytes(b"".join([lines[1], lines[0], *lines[2:]]))
    assert check(exported)
    exported.write_bytes(b"".join([*lines, lines[0]]))
    assert check(exported)


@pytest.mark.parametrize(
    "content", [b"{", b"[]\n", b"\xff\xfe", b'{"entry_id": 5}\n', b'{"seal": 1}\n', b"[" * 100_000]
)
def test_what_is_no_export_is_refused_in_a_sentence(tmp_path: Path, content: bytes) -> None:
    load_secret_key(tmp_path)
    (tmp_path / "other").write_bytes(content)
    with pytest.raises(AuditRefused):
        check(tmp_path / "other")


def test_a_missing_file_is_refused(tmp_path: Path, store: Store) -> None:
    with pytest.raises(AuditRefused, match="No such file"):
        check(tmp_path / "nowhere")
    with pytest.raises(AuditRefused, match="No such file"):
        export_audit(store, tmp_path / "nowhere" / "audit.jsonl")
