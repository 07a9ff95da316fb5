"""Every command, flag, make target and script that the docs show exists."""

import importlib.util
import re
import shlex
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sameface.cli import ROOMS, app
from tests.docs.pages import DOCS, PAGES, console_lines, read_page


@cache
def help_of(*command: str) -> str:
    """What a command says of itself."""
    answer = CliRunner().invoke(app, [*command, "--help"], env={"COLUMNS": "200", "TERMINAL_WIDTH": "200"})
    assert answer.exit_code == 0, answer.output
    return answer.output


def test_every_command_of_the_docs_exists() -> None:
    shown = {line.split()[0] for line in console_lines("sameface") if not line.startswith("--")}
    assert shown <= ROOMS.keys()
    for line in console_lines("sameface"):
        help_of(*shlex.split(line.partition(" --")[0]))


def test_every_command_is_on_the_page_of_commands() -> None:
    page = read_page("docs/cli.md")
    assert [command for command in ROOMS if f"sameface {command}" not in page] == []


def test_every_flag_of_the_docs_exists() -> None:
    for line in console_lines("sameface"):
        command, dashes, flags = line.partition(" --")
        for flag in re.findall(r"--[\w-]+", dashes + flags):
            assert flag in help_of(*shlex.split(command)), f"{command} has no {flag}"


def test_the_commands_of_evaluation_exist() -> None:
    for command, flags in re.findall(r"^sameface (\w+)(.*)$", read_page("docs/evaluation.md"), re.MULTILINE):
        for flag in re.findall(r"--[\w-]+", flags):
            assert flag in help_of(command), f"{command} has no {flag}"


@pytest.mark.parametrize("target", sorted({line.split()[0] for line in console_lines("make")}))
def test_every_make_target_of_the_docs_exists(target: str) -> None:
    assert re.search(rf"^{target}:", read_page("Makefile"), re.MULTILINE)


def test_every_make_target_is_on_the_page_of_operations() -> None:
    shown = {line.split()[0] for line in console_lines("make", DOCS / "operations.md")}
    targets = re.search(r"^\.PHONY: (.+)$", read_page("Makefile"), re.MULTILINE)
    assert set(targets[1].split()) <= shown


def test_every_script_of_the_docs_exists() -> None:
    for page in PAGES:
        for module in re.findall(r"python -m ([\w.]+)", page.read_text("utf-8")):
            assert importlib.util.find_spec(module), f"{page.name} runs {module}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_nothing_is_installed_from_an_index_that_does_not_have_it(page: Path) -> None:
    assert not re.search(r"pip install '?sameface", page.read_text("utf-8"))


def test_the_readme_begins_with_a_clone() -> None:
    start = read_page("README.md").partition("## Start")[2].partition("make serve")[0]
    assert "git clone" in start


def test_the_page_of_training_has_the_commands_for_a_gpu_and_for_curves() -> None:
    page = read_page("docs/training.md")
    assert "tensorboard --logdir" in page
    assert "torch.cuda.is_available" in page.partition("## On a GPU")[2]


@pytest.mark.parametrize("command", ROOMS)
def test_the_help_of_a_command_cuts_no_word_in_a_narrow_terminal(command: str) -> None:
    answer = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "80", "TERMINAL_WIDTH": "80"})
    assert answer.exit_code == 0
    assert "…" not in answer.output
