"""What a terminal shows while a command works."""

import io

import pytest
from rich.console import Console

from sameface.model.commands.console import terminal


def test_a_table_folds_what_is_too_wide_and_cuts_nothing() -> None:
    table, shown = terminal.new_table("person", "name", "similarity"), io.StringIO()
    table.add_row("62f82acfaf222135bad66039", "Ada King, Countess of Lovelace", "0.741")
    Console(file=shown, width=40).print(table)
    assert "…" not in shown.getvalue()
    cells = [line.split("│")[1].strip() for line in shown.getvalue().splitlines() if "│" in line]
    assert "".join(cells) == "62f82acfaf222135bad66039"


@pytest.mark.parametrize(("number", "said"), [(0, "0 people"), (1, "1 person"), (1200, "1,200 people")])
def test_a_number_has_its_noun(number: int, said: str) -> None:
    assert terminal.count(number, "person", "people") == said


def test_a_bar_has_the_count_and_never_another_total(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(terminal, "screen", Console(file=shown, force_terminal=True, width=80))
    with terminal.report_counts() as report:
        report("enrolling", 17, 120)
    assert "17/120" in shown.getvalue()
    assert "/100" not in shown.getvalue()
