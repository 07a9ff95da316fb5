"""The page that `make attack` writes."""

from pathlib import Path

from tests.attack import __main__ as attacks
from tests.attack.findings.outcome import Outcome
from tests.attack.findings.table import FINDINGS
from tests.attack.inputs import Tally
from tests.attack.report import Page
from tests.attack.watch import Measures


def test_all_findings_are_attacked_again_and_all_parts_are_there() -> None:
    assert [finding.number for finding in FINDINGS] == list(range(1, 29))
    assert {finding.severity for finding in FINDINGS} == {"high", "medium", "low"}
    assert all(map(callable, (attacks.try_findings, attacks.send_inputs, attacks.stand_sieges)))


def test_the_page_has_a_row_for_each_finding_and_says_what_fails(tmp_path: Path) -> None:
    page = Page(tmp_path / "attacks.md", "today")
    for finding in FINDINGS:
        page.add_finding(finding, Outcome(True, "holds"), Measures(300.0, 12.0))
    assert page.held
    assert (tmp_path / "attacks.md").read_text().count("| holds | 300 | 12 |") == 28
    page.add_finding(FINDINGS[0], Outcome(False, "falls"), Measures())
    page.add_inputs(Tally(faults=["json:1 is 500"]), 60, [])
    written = (tmp_path / "attacks.md").read_text()
    assert not page.held
    assert "**FAILS**: falls" in written
    assert "**FAILS**: json:1 is 500" in written
