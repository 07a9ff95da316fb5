"""Settings in a TOML file: what wins over what, and files that are refused."""

from pathlib import Path

import httpx
import pytest

from sameface.api.settings import Settings
from sameface.model.errors import CannotServe
from tests.conftest import address_of
from tests.docs.pages import read_page


def write(folder: Path, text: str) -> Path:
    path = folder / "sameface.toml"
    path.write_text(text, "utf-8")
    return path


def test_flags_win_over_the_environment_and_both_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path, "queue = 1\nmax_faces = 1\nmax_images = 3\n")
    monkeypatch.setenv("SAMEFACE_QUEUE", "2")
    monkeypatch.setenv("SAMEFACE_MAX_FACES", "2")
    settings = Settings(config=file, max_faces=3)
    assert (settings.max_faces, settings.queue, settings.max_images) == (3, 2, 3)
    monkeypatch.setenv("SAMEFACE_CONFIG", str(file))
    assert Settings().max_images == 3


def test_every_kind_of_setting_can_be_written(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        'data = "~/faces"\nthreads = 2\nrequest_seconds = 60\ntarget_fmr = 1e-3\nlisten_without_keys = true\n'
        f'device = "cpu"\ncors_origins = ["https://a.example"]\napi_keys = ["{"a" * 64}:read"]\n',
    )
    settings = Settings(config=file)
    assert settings.data == Path("~/faces").expanduser()
    assert (settings.threads, settings.request_seconds, settings.target_fmr) == (2, 60, 1e-3)
    assert (settings.listen_without_keys, settings.device) == (True, "cpu")
    assert settings.cors_origins == ("https://a.example",)
    assert len(settings.api_keys) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("max_face = 3", "there is no setting 'max_face' (did you mean 'max_faces'?)"),
        ("MAX-FACES = 3", "did you mean 'max_faces'?"),
        ("SAMEFACE_QUEUE = 3", "did you mean 'queue'?"),
        ("[server]\nqueue = 3", "there is no setting 'server'"),
        ('config = "other.toml"', "there is no setting 'config'"),
        ('queue = "3"', "queue must be a whole number, not a string"),
        ("queue = true", "queue must be a whole number, not true or false"),
        ("request_seconds = []", "request_seconds must be a number, not an array"),
        ('cors_origins = "a,b"', "cors_origins must be an array, not a string"),
        ("data = 2026-11-18", "data must be a string, not a date or time"),
        ("queue = 1\nqueue = 2\n", "line 2"),
        ("queue = 1\nhost = localhost", "line 2"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(CannotServe) as refusal:
        Settings(config=write(tmp_path, text))
    assert said in str(refusal.value)
    assert "sameface.toml" in str(refusal.value)


def test_a_file_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "gone.toml"):
        with pytest.raises(CannotServe, match="Cannot read"):
            Settings(config=path)
    (tmp_path / "latin.toml").write_bytes(b'host = "\xff"')
    with pytest.raises(CannotServe, match="not TOML"):
        Settings(config=tmp_path / "latin.toml")


def test_a_server_takes_its_settings_from_the_file(start, tmp_path: Path) -> None:
    process = start(SAMEFACE_CONFIG=str(write(tmp_path, 'cors_origins = ["https://a.example"]')))
    answer = httpx.get(f"{address_of(process)}/health/live", headers={"Origin": "https://a.example"})
    assert answer.headers["access-control-allow-origin"] == "https://a.example"


def test_a_value_out_of_range_is_named_where_it_was_set(start, tmp_path: Path) -> None:
    process = start("--config", str(write(tmp_path, "queue = -1")), "--max-faces", "0")
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 2
    assert f"queue in {tmp_path}/sameface.toml: " in said
    assert "SAMEFACE_MAX_FACES: " in said
    assert "Traceback" not in said


def test_the_example_of_the_docs_is_taken(tmp_path: Path) -> None:
    example = read_page("docs/operations.md").partition("```toml\n")[2].partition("```")[0]
    assert Settings(config=write(tmp_path, example)).queue == 64
