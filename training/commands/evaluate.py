"""The command that measures a bundle on test data."""

import shlex
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from sameface.model.commands.console.options import (
    Aligned,
    AsJson,
    BundleName,
    Data,
    Detector,
    Device,
    Groups,
    InPrecision,
    PrecisionFaces,
    by_name,
    pipeline_for,
)
from sameface.model.commands.console.terminal import console, new_table, print_json, report_counts
from sameface.model.data_folder import DEFAULT_DATA, DataFolder
from sameface.model.decision.calibration import Rate
from sameface.model.decision.rates import round_up, write_rate
from sameface.model.decision.thresholds import Rule
from sameface.training.evaluation.data_sets import EvaluationData, Material, open_data
from sameface.training.evaluation.difference import compare_bundles
from sameface.training.evaluation.evaluate import Evaluation, embed_data, measure

if TYPE_CHECKING:
    from sameface.training.evaluation.report import Report

app = typer.Typer(callback=by_name)

NOTHING = "-"
COLOURS = {"holds": "green", "does_not_hold": "red", "cannot_say": "yellow"}


@app.command()
def evaluate(
    bundle: BundleName,
    test_set: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            help="A folder with pairs.txt, a .bin file of InsightFace, a folder with the lists of IJB, or"
            " photos of people, a folder for each.",
        ),
    ],
    against: Annotated[Path | None, typer.Option(help="Another bundle, side by side.")] = None,
    out: Annotated[Path, typer.Option(help="Folder of the report.")] = Path("evaluation"),
    groups: Groups = None,
    target_fmr: Annotated[
        float | None, typer.Option(help="Where the calibration and groups are looked at; 1e-4.")
    ] = None,
    aligned: Aligned = False,
    data: Data = DEFAULT_DATA,
    detector: Detector = None,
    device: Device = "auto",
    precision: InPrecision = "auto",
    precision_faces: PrecisionFaces = None,
    as_json: AsJson = False,
) -> None:
    """Measure a bundle's error rates, with intervals, and write a report with curves."""
    # jinja2 and matplotlib are an extra, and `sameface --help` imports this file without it.
    from sameface.training.evaluation.report import Report, write_report

    Rule(rate=target_fmr)  # refuses a rate outside 0 to 1, before anything is embedded
    opened = open_data(test_set, aligned=aligned)
    measured = [
        run(chosen, opened, groups, target_fmr, data, detector, device, precision, precision_faces)
        for chosen in (bundle, against)
        if chosen
    ]
    evaluations, materials = zip(*measured, strict=True)
    names = [evaluation.bundle for evaluation in evaluations]
    report = Report(
        datetime.now(UTC).isoformat(timespec="seconds"),
        version("sameface"),
        shlex.join(["sameface", *sys.argv[1:]]),
        evaluations,
        compare_bundles(names, materials) if against else None,
    )
    page = write_report(report, out.expanduser())
    if as_json:
        print_json(report)
        return
    show(report)
    console.print(f"The report is in {escape(str(page))}", soft_wrap=True)


def run(
    recognizer: Path,
    opened: EvaluationData,
    groups: Path | None,
    target_fmr: float | None,
    data: Path,
    detector: Path | None,
    device: str,
    precision: str,
    precision_faces: Path | None,
) -> tuple[Evaluation, Material]:
    """Evaluate one bundle; also returns what it made of the data, to compare it with another bundle."""
    opening = pipeline_for(DataFolder(data), recognizer, detector, device, precision, precision_faces)
    with opening as pipeline, report_counts() as progress:
        material = embed_data(pipeline, opened, progress)
        return measure(pipeline, opened, material, groups, target_fmr), material


def show(report: "Report") -> None:
    """Print the most important rates, a column per bundle, and what follows from them."""
    first = report.evaluations[0]
    console.print(make_table(report))
    people = f"{first.people:,} people, " if first.people else ""
    console.print(
        f"{people}{first.genuine_pairs:,} genuine and {first.impostor_pairs:,} impostor pairs; 95 % intervals"
        f" from a bootstrap over {first.drawn_over}. Rates from {write_rate(round_up(first.lowest_fmr))} up"
        " are supported: * has too few pairs to rely on, - says nothing.",
        soft_wrap=True,
    )
    for evaluation in report.evaluations:
        if judged := evaluation.calibrated:
            colour = COLOURS[judged.verdict]
            console.print(f"[{colour}]{escape(judged.sentence)}[/{colour}]", soft_wrap=True)
            if judged.warning:
                console.print(f"[yellow]Warning:[/yellow] {escape(judged.warning)}", soft_wrap=True)
    if report.difference:
        console.print(escape(report.difference.sentence), soft_wrap=True)


def make_table(report: "Report") -> Table:
    """The rates, a row for each."""
    evaluations, first = report.evaluations, report.evaluations[0]
    table = new_table(escape(first.data), *(escape(evaluation.bundle) for evaluation in evaluations))
    if first.accuracy:
        table.add_row("accuracy", *(describe(e.accuracy.rate) for e in evaluations if e.accuracy))
    table.add_row("EER", *(describe(evaluation.eer) for evaluation in evaluations))
    for place, row in enumerate(first.decades):
        decades = [evaluation.decades[place].rates for evaluation in evaluations]
        rates = [describe(each.fnmr if each else None) for each in decades]
        add_row(table, f"FNMR at FMR {write_rate(row.target_fmr)}", rates, supported=row.supported)
    if first.identification:
        for place, search in enumerate(first.identification.rows):
            found = [describe(e.identification.rows[place].fnir) for e in evaluations if e.identification]
            title = f"FNIR at FPIR {write_rate(search.target_fpir)}"
            add_row(table, title, found, supported=search.supported)
    table.add_row("photos without a face", *(f"{e.failed:,} of {e.photos:,}" for e in evaluations))
    return table


def add_row(table: Table, title: str, cells: list[str], *, supported: bool) -> None:
    """Add a row, dimmed and marked if too few pairs are behind it."""
    mark = "" if supported or cells[0] == NOTHING else " *"
    table.add_row(f"{title}{mark}", *cells, style=None if supported else "dim")


def describe(rate: Rate | None) -> str:
    """A rate with its interval, in percent."""
    return f"{rate.value:.2%} ({rate.low:.2%} to {rate.high:.2%})" if rate else NOTHING
