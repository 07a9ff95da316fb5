"""The command that measures a bundle on test data."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from sameface.model.commands.options import (
    Aligned,
    AsJson,
    BundleName,
    Data,
    Detector,
    Device,
    Groups,
    pipeline_for,
)
from sameface.model.commands.terminal import console, print_json, report_counts
from sameface.model.data_folder import DEFAULT_DATA
from sameface.model.decision.calibration import Rate
from sameface.model.decision.thresholds import Rule
from sameface.training.evaluation.data_sets import EvaluationData, open_data
from sameface.training.evaluation.evaluate import Evaluation
from sameface.training.evaluation.evaluate import evaluate as measure

app = typer.Typer()


@app.callback()
def room() -> None:
    """Keep `evaluate` a command by name although it is the only one."""


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
    as_json: AsJson = False,
) -> None:
    """Measure a bundle's error rates, with intervals, and write a report with curves."""
    # jinja2 and matplotlib are an extra, and `sameface --help` imports this file without it.
    from sameface.training.evaluation.report import write_report

    Rule(rate=target_fmr)  # refuses a rate outside 0 to 1, before anything is embedded
    opened = open_data(test_set, aligned=aligned)
    evaluations = [
        run(chosen, opened, groups, target_fmr, data, detector, device)
        for chosen in (bundle, against)
        if chosen
    ]
    page = write_report(evaluations, out.expanduser())
    if as_json:
        print_json(evaluations)
        return
    show(evaluations)
    console.print(f"The report is in {escape(str(page))}", soft_wrap=True)


def run(
    recognizer: Path,
    opened: EvaluationData,
    groups: Path | None,
    target_fmr: float | None,
    data: Path,
    detector: Path | None,
    device: str,
) -> Evaluation:
    """Evaluate one bundle."""
    with pipeline_for(data, recognizer, detector, device) as pipeline, report_counts() as progress:
        return measure(pipeline, opened, groups=groups, target_fmr=target_fmr, progress=progress)


def show(evaluations: list[Evaluation]) -> None:
    """Print the most important rates, a column per bundle."""
    first = evaluations[0]
    table = Table(escape(first.data), *(escape(evaluation.bundle) for evaluation in evaluations))
    if first.accuracy:
        table.add_row("accuracy", *(describe(e.accuracy.rate) for e in evaluations if e.accuracy))
    table.add_row("EER", *(describe(evaluation.eer) for evaluation in evaluations))
    for place, row in enumerate(first.decades):
        rates = [evaluation.decades[place].rates.fnmr for evaluation in evaluations]
        title = f"FNMR at FMR {row.target_fmr:.0e}" + ("" if row.supported else " *")
        table.add_row(title, *map(describe, rates))
    if first.identification:
        for place, search in enumerate(first.identification.rows):
            found = [e.identification.rows[place].fnir for e in evaluations if e.identification]
            title = f"FNIR at FPIR {search.target_fpir:g}" + ("" if search.supported else " *")
            table.add_row(title, *map(describe, found))
    table.add_row("photos without a face", *(f"{e.failed:,} of {e.photos:,}" for e in evaluations))
    console.print(table)
    console.print(
        f"{first.genuine_pairs:,} genuine and {first.impostor_pairs:,} impostor pairs; 95 % intervals from a"
        f" bootstrap over {first.drawn_over}. * has too few pairs to rely on.",
        soft_wrap=True,
    )


def describe(rate: Rate) -> str:
    """A rate with its interval, in percent."""
    return f"{rate.value:.2%} ({rate.low:.2%} to {rate.high:.2%})"
