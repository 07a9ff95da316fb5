"""How the command line shows things: tables and sentences for people, JSON for scripts."""

import dataclasses
import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
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

from sameface.model.bundles.bundle import Bundle
from sameface.model.faces import Embedding
from sameface.model.observer import Progress as Report
from sameface.model.verify import Decision, Look

console = Console()
screen = Console(stderr=True)  # for what is no answer: progress, warnings


def print_json(value: Any, *hidden: str) -> None:
    """Print the value as JSON, in the names that the HTTP API uses, without the fields called `hidden`."""
    print(json.dumps(to_plain(value, *hidden), indent=2))


def to_plain(value: Any, *hidden: str) -> Any:
    """Dataclasses as objects without crops and `hidden` fields, embeddings as lists of numbers."""
    if isinstance(value, Embedding):
        return value.values.tolist()
    if isinstance(value, Look):
        return {
            "faces": to_plain(value.faces, *hidden),
            "faces_found": value.faces_found,
            "timings_ms": value.timings_ms,
        }
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value) if field.name not in ("crop", *hidden)]
        return {name: to_plain(getattr(value, name), *hidden) for name in names}
    if isinstance(value, dict):
        return {key: to_plain(item, *hidden) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item, *hidden) for item in value]
    return str(value) if isinstance(value, Path) else value


def describe_decision(decision: Decision) -> str:
    """A decision in one line."""
    verdict = (
        "[green]the same person[/green]" if decision.same_person else "[yellow]different people[/yellow]"
    )
    sign = ">=" if decision.same_person else "<"
    answer = f"{verdict}: similarity {decision.similarity:.3f} {sign} threshold {decision.threshold:.3f}"
    if decision.estimated_fmr is None:
        return answer
    at = f" for FMR {decision.target_fmr:g}" if decision.target_fmr else ""
    beyond = ", extrapolated" if decision.extrapolated else ""
    return f"{answer}{at}; so similar are {describe_share(decision.estimated_fmr)} strangers{beyond}"


def describe_share(rate: float) -> str:
    """A small share as one in so many."""
    return f"{rate:.0%} of" if rate >= 0.1 else f"1 in {1 / rate:,.0f}"


def describe_bundle(bundle: Bundle) -> dict[str, Any]:
    """A bundle and where it is."""
    return bundle.describe() | {"folder": str(bundle.folder)}


def report_downloads() -> AbstractContextManager[Report]:
    """A progress bar per download, on a terminal."""
    return show_bars(DownloadColumn(), TransferSpeedColumn())


def report_counts() -> AbstractContextManager[Report]:
    """A progress bar per step of long work, on a terminal."""
    return show_bars(MofNCompleteColumn(), TimeRemainingColumn())


@contextmanager
def show_bars(*measures: ProgressColumn) -> Iterator[Report]:
    """A bar per thing that is reported on."""
    columns = TextColumn("{task.description}"), BarColumn(), *measures
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as progress:
        tasks: dict[str, TaskID] = {}

        def report(what: str, done: int, total: int | None) -> None:
            if what not in tasks:
                tasks[what] = progress.add_task(what)
            progress.update(tasks[what], completed=done, total=total)

        yield report
