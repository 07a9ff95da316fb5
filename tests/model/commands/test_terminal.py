"""What a terminal shows while a command works."""

import io

import pytest
from rich.console import Console

from sameface.model.commands import terminal


def test_a_bar_has_the_count_and_never_another_total(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(terminal, "screen", Console(file=shown, force_terminal=True, width=80))
    with terminal.report_counts() as report:
        report("enrolling", 17, 120)
    assert "17/120" in shown.getvalue()
    assert "/100" not in shown.getvalue()
