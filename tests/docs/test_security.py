"""The budgets on the page about security are those of the code."""

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

from sameface.api.settings import PREFIX, Settings
from tests.docs.pages import read_page, table_rows

BUDGETS = table_rows("docs/security.md", "Budgets")


def find_default(name: str, folder: Path) -> Any:
    """The default of a setting, the value of a constant, or the mode that a function of files gives."""
    if name.startswith(PREFIX):
        return Settings.model_fields[name.removeprefix(PREFIX).lower()].default
    module, _, member = name.rpartition(".")
    found = getattr(importlib.import_module(f"sameface.{module}"), member)
    return find_mode(found, folder / "made") if callable(found) else found


def find_mode(make: Any, path: Path) -> int:
    """The mode of what `make` makes at a path, its octal digits read as a number."""
    made = make(path)
    if made:
        made.close()
    return int(f"{path.stat().st_mode & 0o777:o}")


@pytest.mark.parametrize(("what", "default", "name"), [row[:3] for row in BUDGETS])
def test_the_budgets_are_those_of_the_code(what: str, default: str, name: str, tmp_path: Path) -> None:
    assert float(default.replace(",", "")) == find_default(name.strip("`"), tmp_path), what


def test_every_setting_that_limits_has_a_row() -> None:
    limits = {name for name in Settings.model_fields if name.startswith("max_")} | {
        "queue",
        "request_seconds",
    }
    listed = {name.strip("`") for _, _, name, _, _ in BUDGETS}
    assert {f"{PREFIX}{name.upper()}" for name in limits} <= listed


def test_what_the_client_sees_is_a_documented_error() -> None:
    named = {code for *_, seen, _ in BUDGETS for code in re.findall(r"`(\w+)`", seen)}
    over_http = {
        code.strip("`"): int(status) for status, code, _ in table_rows("docs/errors.md", "Over HTTP")
    }
    on_the_command_line = {code.strip("`") for code, _ in table_rows("docs/errors.md", "On the command line")}
    assert named <= over_http.keys() | on_the_command_line
    for status, code in re.findall(r"(\d{3}) `(\w+)`", read_page("docs/security.md")):
        assert over_http[code] == int(status)


def test_the_metrics_of_budgets_are_documented() -> None:
    named = {metric for *_, metrics in BUDGETS for metric in re.findall(r"`(\w+)`", metrics)}
    assert named <= {name.strip("`") for name, _ in table_rows("docs/operations.md", "Metrics")}


def test_the_policy_invents_no_address() -> None:
    assert not re.search(r"@|https?:", read_page("SECURITY.md"))
