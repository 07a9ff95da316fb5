"""How the command line shows things: tables and sentences for people, JSON for scripts."""

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.table import Column, Table

from sameface.model.bundles.bundle import Bundle
from sameface.model.decision.rates import write_rate
from sameface.model.enroll_warnings import EnrollWarning
from sameface.model.faces import to_plain
from sameface.model.observer import Progress as Report
from sameface.model.verify import Decision

WARNINGS = {
    "same_photo": "the very same photo is enrolled as {person_id}",
    "looks_like_another_person": "looks like {person_id}, at a similarity of {similarity:.3f}",
    "unlike_own_faces": "is unlike the other faces of this person, {similarity:.3f} at best",
    "several_faces": "shows {faces_found} people, and the most prominent one was taken",
}

console = Console(highlight=False)  # colours are for what they mean, not for every number
screen = Console(stderr=True, highlight=False)  # for progress and warnings, which are no part of the output


def print_json(value: Any) -> None:
    """Print a value, or several in lists and mappings, as JSON in the names of the HTTP API."""
    print(json.dumps(to_plain(value), indent=2))


def new_table(*headers: str, title: str = "") -> Table:
    """An empty table that never cuts a cell: what is too wide for the terminal is folded."""
    return Table(*(Column(header, overflow="fold") for header in headers), title=title, title_justify="left")


def show_reasons(title: str, what: str, rows: Sequence[tuple[object, str]]) -> None:
    """Print a table of things, each with a sentence that says why it is listed, if there are any."""
    if not rows:
        return
    table = new_table(what, "why", title=title)
    for thing, why in rows:
        table.add_row(escape(str(thing)), escape(why))
    console.print(table)


def count(number: int, one: str, several: str) -> str:
    """A number with its noun: `1 person`, `1,200 people`."""
    return f"{number:,} {one if number == 1 else several}"


def describe_decision(decision: Decision) -> str:
    """A decision in one line."""
    verdict = (
        "[green]the same person[/green]" if decision.same_person else "[yellow]different people[/yellow]"
    )
    sign = ">=" if decision.same_person else "<"
    answer = f"{verdict}: similarity {decision.similarity:.3f} {sign} threshold {decision.threshold:.3f}"
    if decision.estimated_fmr is None:
        return answer
    at = f" for FMR {write_rate(decision.target_fmr)}" if decision.target_fmr else ""
    beyond = ", extrapolated" if decision.extrapolated else ""
    fewer = "fewer than " if decision.estimated_fmr_is_bound else ""
    return f"{answer}{at}; so similar are {fewer}{describe_share(decision.estimated_fmr)} strangers{beyond}"


def describe_warning(warning: EnrollWarning) -> str:
    """What is odd about an enrolled face, in words."""
    return WARNINGS.get(warning.code, warning.code).format(**warning.to_dict())


def describe_share(rate: float) -> str:
    """A rate in words: a percentage, or `1 in N` for a small one."""
    return f"{rate:.0%} of" if rate >= 0.1 else f"1 in {1 / rate:,.0f}"


def describe_bundle(bundle: Bundle) -> dict[str, Any]:
    """The fields of a bundle, and its folder."""
    return bundle.describe() | {"folder": str(bundle.folder)}


def report_bytes() -> AbstractContextManager[Report]:
    """A progress bar per file that is fetched or copied, on a terminal."""
    return show_bars(DownloadColumn(), TransferSpeedColumn())


def report_counts() -> AbstractContextManager[Report]:
    """A progress bar per step of long work, on a terminal."""
    return show_bars(MofNCompleteColumn(), TimeRemainingColumn())


@contextmanager
def show_bars(*measures: ProgressColumn) -> Iterator[Report]:
    """Yield a callback that shows a progress bar for each step that it is called with."""
    columns = TextColumn("{task.description}"), BarColumn(), *measures
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as progress:
        tasks: dict[str, TaskID] = {}

        def report(what: str, done: int, total: int | None) -> None:
            if what not in tasks:
                tasks[what] = progress.add_task(what, total=total)
            progress.update(tasks[what], completed=done, total=total)

        yield report
