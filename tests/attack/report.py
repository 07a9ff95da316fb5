"""The page about the attacks, written again after every step."""

from pathlib import Path

from tests.attack.findings.outcome import Outcome
from tests.attack.findings.table import Finding
from tests.attack.inputs import Tally, show_answers
from tests.attack.siege import CLIENTS, LEAST_SHARE, MOST_SECONDS, Siege
from tests.attack.watch import Measures

SECTIONS = ("head", "about", "findings", "inputs", "sieges")
HEAD = """\
# Attacks

This page is written by `make attack`, which attacks real servers and says what happened.
[Security](security.md) says what is defended, how, and what is not.
"""
FINDINGS = """\
## What an attacker once found

Each row does the attack again, against servers and commands of its own. Memory is the peak of their
processes, and the last column the slowest answer of `/health/live`, asked ten times a second meanwhile.

| # | severity | what was sent | what happens now | peak RSS MB | slowest /health/live ms |
|---|---|---|---|---|---|
"""
INPUTS = """\
Drawn by seeds, and sent by a few clients at once to one server: how many got which status, or what happened
instead. `none`: no whole request, so no answer was due; `cut`: the server hung up.
"""
SIEGES = f"""\
## Many attackers at once

{CLIENTS} ordinary clients compare photos, alone and beside attackers, all on one machine. Beside those who
repeat the gravest findings they must keep {LEAST_SHARE:.0%} of their throughput and a p99 below
{MOST_SECONDS:.0f} s. The other rows are things that keys and limits allow, and that cost most: these are
measurements and no promises. In the middle of each siege the server is told to stop.

| what attackers do | verifications/s before | during | share | p99 s | stopped in s | peak MB | live ms |
|---|---|---|---|---|---|---|---|
"""


class Page:
    """The sections of the page so far, and whether everything held."""

    def __init__(self, path: Path, about: str) -> None:
        self.path = path
        self.held = True
        self.sections = {"head": HEAD, "about": f"{about}\n"}

    def write(self, name: str, content: str) -> None:
        """Set a section and write the page."""
        self.sections[name] = content
        written = [self.sections[section] for section in SECTIONS if section in self.sections]
        self.path.write_text("\n".join(written), "utf-8")

    def add_row(self, name: str, head: str, cells: list[str]) -> None:
        """Add a row to the table of a section."""
        row = f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |\n"
        self.write(name, self.sections.get(name, head) + row)

    def add_finding(self, finding: Finding, outcome: Outcome, measures: Measures) -> None:
        """Add the row of a finding."""
        self.held = self.held and outcome.held
        now = outcome.now if outcome.held else f"**FAILS**: {outcome.now}"
        cells = [str(finding.number), finding.severity, finding.sent, now, *show_measures(measures)]
        self.add_row("findings", FINDINGS, cells)

    def add_inputs(self, tally: Tally, seconds: float, notes: list[str]) -> None:
        """Set the section about hostile inputs, with what was measured."""
        self.held = self.held and not tally.faults
        title = f"## {sum(tally.answers.values()):,} hostile inputs in {seconds / 60:.0f} minutes\n"
        faults = [f"**FAILS**: {fault}" for fault in tally.faults]
        listed = "".join(f"- {line}\n" for line in notes + faults)
        self.write("inputs", "\n".join([title, INPUTS, show_answers(tally), "", listed]))

    def add_siege(self, title: str, siege: Siege, measures: Measures, *, must_hold: bool) -> None:
        """Add the row of a siege."""
        fails = must_hold and not siege.held
        self.held = self.held and not fails
        cells = [
            f"**FAILS**: {title}" if fails else title,
            f"{siege.before.per_second:.1f}",
            f"{siege.during.per_second:.1f}",
            f"{siege.share:.2f}",
            f"{siege.p99_seconds:.2f}",
            f"{siege.stop_seconds:.1f}",
            *show_measures(measures),
        ]
        self.add_row("sieges", SIEGES, cells)


def show_measures(measures: Measures) -> list[str]:
    """Memory and liveness; commands have no liveness."""
    return [f"{measures.peak_megabytes:.0f}", f"{measures.slowest_ms:.0f}" if measures.slowest_ms else ""]
