"""The model card: the numbers of the contract, and no others."""

import re
import shlex
from pathlib import Path

import httpx
import pytest

pytest.importorskip("torch")

from sameface.training.export.model_card import table
from tests.conftest import address_of
from tests.training.export.test_export import export, save_trained


def read_card(folder: Path, **changes: object) -> str:
    save_trained(folder / "last.pt", **changes)
    return (export(folder / "last.pt", folder / "out").folder / "README.md").read_text()


def test_the_card_tells_what_was_learned_from_what(tmp_path: Path) -> None:
    card = read_card(tmp_path)
    assert card.startswith("# tiny\n")
    for row in (
        ("identities", "12"),
        ("images", "345"),
        ("identities left out, with too few images", "6"),
        ("blends of two of them", "0"),
        ("images that could not be read", "7"),
        ("images trained on", "1,380: each 4.0 times, on average"),
        ("`loss.head`", "cosface"),
        ("weights", "those of this step"),
        ("opset", "17"),
    ):
        assert row in read_rows(card), row
    assert "sameface serve --recognizer tiny" in card


def test_the_line_that_serves_it_works_as_it_is_typed(start, tmp_path: Path, monkeypatch) -> None:
    [line] = re.findall(r"^sameface serve .*$", read_card(tmp_path), re.MULTILINE)
    monkeypatch.chdir(tmp_path / "out")
    address = address_of(start(*shlex.split(line)[2:], SAMEFACE_RECOGNIZER=""))
    assert httpx.get(f"{address}/health/ready").json()["recognizer"] == "tiny"


def read_rows(card: str) -> set[tuple[str, ...]]:
    rows = (line.strip("|").split("|") for line in card.splitlines() if line.startswith("|"))
    return {tuple(cell.strip() for cell in row) for row in rows}


def test_accuracy_is_claimed_only_where_it_was_measured(tmp_path: Path) -> None:
    (tmp_path / "with").mkdir()
    (tmp_path / "without").mkdir()
    assert "81.25%" in read_card(tmp_path / "with")
    card = read_card(tmp_path / "without", accuracy=None)
    assert "Accuracy was not measured." in card
    assert "%" not in card
    assert "It has no threshold yet" in card


def test_a_table_lines_up_and_survives_a_bar_in_a_cell() -> None:
    lines = table(("key", "value"), [("a|b", "1"), ("long enough", "2\n3")]).splitlines()
    assert len(set(map(len, lines))) == 1
    assert lines[2].startswith("| a\\|b ")
    assert lines[3].endswith("| 2 3   |")
