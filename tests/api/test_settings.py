"""Settings: from the environment, from flags, and the door that stays shut."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from sameface.api.settings import Settings
from sameface.model.runtime.precision.choice import Precision


def test_the_environment_sets_what_flags_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAMEFACE_QUEUE", "7")
    monkeypatch.setenv("SAMEFACE_PORT", "9000")
    settings = Settings(port=9001)
    assert (settings.queue, settings.port) == (7, 9001)


def test_lists_are_separated_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAMEFACE_CORS_ORIGINS", "https://a.example, https://b.example,")
    monkeypatch.setenv("SAMEFACE_API_KEYS", f"{'a' * 64}:read,{'b' * 64}:read+write")
    settings = Settings()
    assert settings.cors_origins == ("https://a.example", "https://b.example")
    found = [sorted(key.scopes) for key in settings.api_keys]
    assert found == [
        ["read", "search"],
        ["admin", "read", "search", "write"],
    ]


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("127.0.0.1", True), ("localhost", True), ("::1", True), ("0.0.0.0", False), ("example.org", False)],
)
def test_loopback_is_recognised(host: str, loopback: bool) -> None:
    assert Settings(host=host).is_loopback is loopback


@pytest.mark.parametrize("wrong", [{"queue": -1}, {"device": "tpu"}, {"port": 70000}, {"request_seconds": 0}])
def test_a_setting_out_of_range_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Settings(**wrong)


def test_the_precision_and_the_faces_that_prove_it_reach_the_networks(tmp_path: Path) -> None:
    chosen = Settings(data=tmp_path, precision="bf16", precision_faces="~/own").pipeline_options()
    assert chosen.precision == Precision("bf16", Path("~/own").expanduser())
    assert Settings(data=tmp_path).pipeline_options().precision == Precision("auto", None)


def test_every_setting_says_what_it_is_for() -> None:
    assert all(field.description for field in Settings.model_fields.values())
