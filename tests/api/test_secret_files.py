"""Secret settings may be files, as orchestrators mount them."""

import logging
from pathlib import Path

import pytest

from sameface.api.commands.serve import warn_of_unknown_variables
from sameface.api.settings import Settings
from sameface.model.errors import CannotServe

ENTRIES = [f"{'a' * 64}:read", f"door:{'b' * 64}:admin"]


def test_a_file_holds_the_keys_by_line_or_by_comma(tmp_path: Path, monkeypatch, caplog) -> None:
    path = tmp_path / "keys"
    monkeypatch.setenv("SAMEFACE_API_KEYS_FILE", str(path))
    for content in (f"{ENTRIES[0]}\n{ENTRIES[1]}\n", ",".join(ENTRIES), f"\n {ENTRIES[0]} \r\n{ENTRIES[1]}"):
        path.write_text(content)
        assert [sorted(key.scopes) for key in Settings().api_keys] == [["read", "search"], ["admin"]]
    caplog.set_level(logging.WARNING)
    warn_of_unknown_variables()
    assert caplog.text == ""


def test_a_flag_wins_over_the_file(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "keys"
    path.write_text(ENTRIES[0])
    monkeypatch.setenv("SAMEFACE_API_KEYS_FILE", str(path))
    assert [key.name for key in Settings(api_keys=ENTRIES[1]).api_keys] == ["door"]


def test_a_secret_is_set_once(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "keys"
    path.write_text(ENTRIES[0])
    monkeypatch.setenv("SAMEFACE_API_KEYS_FILE", str(path))
    monkeypatch.setenv("SAMEFACE_API_KEYS", ENTRIES[1])
    with pytest.raises(CannotServe, match="not both"):
        Settings()


@pytest.mark.parametrize("content", [None, b"\xff\xfe", b"", b"\n"])
def test_a_file_without_keys_opens_no_door(tmp_path: Path, monkeypatch, content: bytes | None) -> None:
    path = tmp_path / "keys"
    if content is not None:
        path.write_bytes(content)
    monkeypatch.setenv("SAMEFACE_API_KEYS_FILE", str(path))
    with pytest.raises(CannotServe, match=r"cannot be read|is empty"):
        Settings()
