import stat
import threading
from pathlib import Path

import pytest

from sameface.model.access.secret_key import load_secret_key
from sameface.model.errors import SecretKeyRefused


def test_a_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    first = load_secret_key(tmp_path / "data")
    assert stat.S_IMODE((tmp_path / "data/secret.key").stat().st_mode) == 0o600
    assert load_secret_key(tmp_path / "data") == first
    assert load_secret_key(tmp_path / "other") != first
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["secret.key"]


def test_threads_that_make_one_at_the_same_time_get_the_same(tmp_path: Path) -> None:
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(load_secret_key(tmp_path))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 16
    assert len(set(found)) == 1


def test_the_environment_goes_before_the_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mounted").write_text("f" * 40 + "\n")
    monkeypatch.setenv("SAMEFACE_SECRET_KEY_FILE", str(tmp_path / "mounted"))
    assert load_secret_key(tmp_path).secret == b"f" * 40
    monkeypatch.setenv("SAMEFACE_SECRET_KEY", "v" * 32)
    assert load_secret_key(tmp_path).secret == b"v" * 32
    assert not (tmp_path / "secret.key").exists()


def test_a_short_or_missing_key_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SecretKeyRefused, match="No such file"):
        load_secret_key(tmp_path, make=False)
    monkeypatch.setenv("SAMEFACE_SECRET_KEY_FILE", str(tmp_path / "nowhere"))
    with pytest.raises(SecretKeyRefused, match="No such file"):
        load_secret_key(tmp_path)
    monkeypatch.setenv("SAMEFACE_SECRET_KEY", "short")
    with pytest.raises(SecretKeyRefused, match="has 5 characters"):
        load_secret_key(tmp_path)


def test_a_key_signs_differently_for_each_purpose_and_is_not_shown(tmp_path: Path) -> None:
    key = load_secret_key(tmp_path)
    signature = key.sign("audit", b"content")
    assert key.has_signed("audit", b"content", signature)
    assert not key.has_signed("webhook", b"content", signature)
    assert not key.has_signed("audit", b"other", signature)
    assert not key.has_signed("audit", b"content", "ünsigned")
    assert key.secret.decode() not in repr(key)


def test_a_key_encrypts_differently_for_each_purpose_and_notices_a_change(tmp_path: Path) -> None:
    key, other = load_secret_key(tmp_path / "one"), load_secret_key(tmp_path / "other")
    sealed = key.encrypt("keys", "sécret")
    assert "sécret" not in sealed
    assert key.encrypt("keys", "sécret") != sealed
    assert key.decrypt("keys", sealed) == "sécret"
    assert key.decrypt("webhook", sealed) is None
    assert other.decrypt("keys", sealed) is None
    assert key.decrypt("keys", f"{sealed[:-6]}AAAAA=") is None
