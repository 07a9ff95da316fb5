"""The command line as a whole: its version, its help, its completion, and how it fails."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer

import sameface
from sameface.cli import HELP, ROOMS
from tests.pictures import photo_of

COMPLETE = "from sameface.cli import main; import sys; sys.argv[0] = 'sameface'; main()"


def complete(words: str) -> list[str]:
    """What bash gets for a line whose last word is to be completed."""
    place = str(len(words.split(" ")) - 1)
    asked = {"_SAMEFACE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": place}
    watched = (
        f"try:\n    {COMPLETE.replace('; ', chr(10) + '    ')}\nfinally:\n    print(*sorted(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", watched], capture_output=True, text=True, check=True, env=os.environ | asked
    )
    return done.stdout.split()


def test_the_version_is_that_of_the_package(run) -> None:
    assert run("--version").stdout == f"sameface {sameface.__version__}\n"


def test_the_help_shows_no_type_for_its_own_flags(run) -> None:
    shown = run("--help").stdout
    assert "--install-completion" in shown
    assert "<bool>" not in shown


@pytest.mark.parametrize("words", [("nope",), ("verify",), ("verify", "one.png", "--threshold", "high")])
def test_a_usage_error_is_json_where_json_is_asked_for(run, words: tuple[str, ...]) -> None:
    said = run(*words, "--json")
    assert (said.returncode, json.loads(said.stdout)["code"], said.stderr) == (2, "usage", "")
    plain = run(*words)
    assert (plain.returncode, plain.stdout) == (2, "")
    assert "Usage:" in plain.stderr


def test_an_error_as_json_has_the_facts_that_http_gives(run, tmp_path) -> None:
    for name, content in {"ada": photo_of(1), "room": photo_of()}.items():
        (tmp_path / f"{name}.png").write_bytes(content)
    said = run("verify", tmp_path / "ada.png", tmp_path / "room.png", "--json")
    error = json.loads(said.stdout)
    assert (error["image"], error["faces_found"]) == ("reference", 0)
    assert str(tmp_path / "room.png") in error["detail"]


def test_a_shell_completes_names_without_loading_any_command() -> None:
    completed = complete("sameface en")
    assert completed[0] == "enroll"
    assert "numpy" not in completed
    assert "--collection" in complete("sameface enroll --c")


@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_help_and_version_import_no_room(flag: str) -> None:
    watched = f"import sys; sys.argv[1:] = ['{flag}']\ntry:\n    from sameface.cli import main; main()\n"
    watched += "finally:\n    print(*(name for name in sys.modules if name.startswith('sameface.')))"
    done = subprocess.run([sys.executable, "-c", watched], capture_output=True, text=True, check=True)
    assert set(done.stdout.splitlines()[-1].split()) == {
        "sameface.cli",
        "sameface.model",
        "sameface.model.errors",
    }


@pytest.mark.parametrize("name", ROOMS)
def test_the_help_of_a_command_is_the_first_line_of_its_docstring(name: str) -> None:
    command = typer.main.get_group(importlib.import_module(ROOMS[name]).app).commands[name]
    assert command.help.splitlines()[0] == HELP[name]


def test_a_data_folder_that_cannot_be_written_is_one_sentence(run, tmp_path) -> None:
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "ada.png").write_bytes(photo_of(1))
    for words in (("verify", tmp_path / "ada.png", tmp_path / "ada.png"), ("demo",)):
        said = run(*words, SAMEFACE_DATA=str(tmp_path / "file"))
        assert (said.returncode, said.stderr.partition(":")[0]) == (2, "folder_refused")
        assert str(tmp_path / "file") in said.stderr


def test_the_former_export_says_where_both_of_its_halves_are(run) -> None:
    said = run("export", "--help")
    assert "`sameface gallery export` now; for a checkpoint it is `sameface bundle export`" in said.stderr


def test_commands_take_the_data_folder_from_the_file_of_the_server(run, data: Path, tmp_path: Path) -> None:
    file = tmp_path / "sameface.toml"
    file.write_text(f'data = "{data}"\nqueue = 7\n')
    named = {"SAMEFACE_CONFIG": str(file), "SAMEFACE_DATA": ""}
    assert "tiny-recogniser" in run("models", **named).stdout
    assert "no bundles yet" in run("models", "--data", tmp_path, **named).stdout
    assert "no bundles yet" in run("models", **{**named, "SAMEFACE_DATA": str(tmp_path)}).stdout


def test_a_file_that_is_not_toml_is_named_with_its_line(run, tmp_path: Path) -> None:
    (tmp_path / "sameface.toml").write_text("queue = 7\ndata = ~\n")
    refused = run("models", SAMEFACE_CONFIG=str(tmp_path / "sameface.toml"))
    assert refused.returncode == 2
    assert f"{tmp_path}/sameface.toml is not TOML" in refused.stderr
    assert "line 2" in refused.stderr
