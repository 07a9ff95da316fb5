"""The command that measures error rates on the user's own photos."""

import os
import shlex
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Column, Table

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
from sameface.model.decision.calibration import Calibration, ErrorRates, Rate
from sameface.model.decision.calibration_files import save_calibration
from sameface.model.decision.rates import round_up, write_rate
from sameface.model.decision.thresholds import TARGET_FMR, Rule
from sameface.model.measurement.embed_photos import choose_embed
from sameface.model.measurement.fit_calibration import calibrate as measure
from sameface.model.measurement.fit_calibration import need_more
from sameface.model.measurement.groups import compare_groups, read_groups
from sameface.model.measurement.labelled_photos import (
    LabelledFaces,
    Lookalikes,
    find_lookalikes,
    read_labelled,
)

app = typer.Typer()


@app.callback()
def room() -> None:
    """Keep `calibrate` a command by name although it is the only one."""


@app.command()
def calibrate(
    bundle: BundleName,
    folder: Annotated[Path, typer.Argument(help="Photos of people, a folder for each.")],
    name: Annotated[str, typer.Option(help="Of the calibration.")] = "own",
    groups: Groups = None,
    by_worst_group: Annotated[
        bool, typer.Option("--by-worst-group", help="Let the group with most false matches set thresholds.")
    ] = False,
    target_fmr: Annotated[
        float, typer.Option(help="Where groups are compared.", show_default=write_rate(TARGET_FMR))
    ] = TARGET_FMR,
    aligned: Aligned = False,
    default: Annotated[
        bool,
        typer.Option("--default", help="Decide by it; the first calibration of a bundle is that anyway."),
    ] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Replace the calibration of this name.")] = False,
    data: Data = DEFAULT_DATA,
    detector: Detector = None,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Measure a recogniser's error rates on photos of your own cameras, for thresholds that hold there."""
    Rule(rate=target_fmr)
    opened = pipeline_for(data, bundle, detector, device)
    with opened as pipeline, report_counts() as progress:
        embed = choose_embed(pipeline, aligned=aligned)
        faces = read_labelled(folder.expanduser(), embed, pipeline.options.threads, progress)
    recogniser = pipeline.embedder.bundle
    measured = measure(
        recogniser,
        name,
        faces,
        data=folder.expanduser().absolute().name,
        target_fmr=target_fmr,
        groups=read_groups(groups.expanduser(), faces) if groups else (),
        by_worst_group=by_worst_group,
    )
    path = save_calibration(measured, recogniser, default=default, replacing=replace)
    lookalikes = find_lookalikes(faces)
    in_use = default or recogniser.contract.calibration in (None, name)
    command = write_serve_line(measured, bundle, data, in_use=in_use)
    if as_json:
        print_json(describe(measured, faces, lookalikes, path) | {"in_use": in_use, "serve": command})
    else:
        show(measured, lookalikes, path, target_fmr)
        show_next(measured, command, in_use=in_use)


def describe(
    measured: Calibration, faces: LabelledFaces, lookalikes: list[Lookalikes], path: Path
) -> dict[str, Any]:
    """The calibration, its file, failed photos and lookalikes, as JSON."""
    decade, pairs, people = need_more(measured.lowest_fmr, measured.evidence.people)
    return {
        **measured.describe(),
        "next_decade": {"fmr": decade, "more_pairs": pairs, "more_people": people},
        "lookalikes": lookalikes,
        "failed": faces.failed,
        "file": path,
    }


def write_serve_line(measured: Calibration, bundle: Path, data: Path, *, in_use: bool) -> str:
    """The command that serves by this calibration, at a rate that it supports."""
    words = ["sameface", "serve", "--recognizer", str(bundle)]
    if data != DEFAULT_DATA and os.environ.get("SAMEFACE_DATA") != str(data):
        words += ["--data", str(data)]
    if not in_use:
        words += ["--calibration", measured.name.partition("/")[2]]
    if measured.lowest_fmr > TARGET_FMR:
        words += ["--target-fmr", write_rate(round_up(measured.lowest_fmr))]
    return shlex.join(words)


def show_next(measured: Calibration, command: str, *, in_use: bool) -> None:
    """Print whether the calibration decides from now on, and the command to type next."""
    state = "decides from the next start on" if in_use else "is not in use yet"
    few = f"; {write_rate(TARGET_FMR)}, the default rate, is lower than its data supports"
    why = few if measured.lowest_fmr > TARGET_FMR else ""
    console.print(f"{escape(measured.name)} {state}{why}. Serve by it:", soft_wrap=True)
    console.print(f"\n  {escape(command)}\n", soft_wrap=True)


def show(measured: Calibration, lookalikes: list[Lookalikes], path: Path, target_fmr: float) -> None:
    """Print the calibration, its groups, its file and the lookalikes."""
    evidence = measured.evidence
    console.print(
        f"[green]{escape(measured.name)}[/green]: {evidence.people:,} people, {evidence.faces:,} faces"
        f" ({evidence.failed:,} photos without), {evidence.genuine_pairs:,} genuine and"
        f" {evidence.impostor_pairs:,} impostor pairs",
        soft_wrap=True,
    )
    table = Table("FMR", "threshold", "FNMR", "95 % interval of the FMR", "of the FNMR")
    for number, rates in enumerate(measured.decades, 1):
        table.add_row(f"1e-{number}", *describe_rates(rates))
    console.print(table)
    decade, pairs, people = need_more(measured.lowest_fmr, evidence.people)
    lowest = write_rate(round_up(measured.lowest_fmr))
    console.print(
        f"Rates from {lowest} up are supported. For {write_rate(decade)} it takes {pairs:,} impostor pairs"
        f" more: about {people:,} people more with as many photos each.",
        soft_wrap=True,
    )
    show_groups(measured, target_fmr)
    if lookalikes:
        several = Table(
            Column("photo", overflow="fold"), Column("of another person", overflow="fold"), "similarity"
        )
        for pair in lookalikes:
            several.add_row(escape(pair.file), escape(pair.other), f"{pair.similarity:.3f}")
        console.print(
            "\nAs similar as two photos of one person. If they are, correct it: they count as false matches.",
            several,
        )
    console.print(f"Written to {escape(str(path))}.", soft_wrap=True)


def describe_rates(rates: ErrorRates) -> list[str]:
    """The cells of a table row: threshold, FNMR, and both intervals."""
    return [
        f"{rates.threshold:.4f}",
        write_rate(rates.fnmr.value),
        describe_interval(rates.fmr),
        describe_interval(rates.fnmr),
    ]


def describe_interval(rate: Rate) -> str:
    """The interval of a rate in words."""
    return f"{write_rate(rate.low)} to {write_rate(rate.high)}"


def show_groups(measured: Calibration, target_fmr: float) -> None:
    """Print the rates of the groups, if there are any, and at which rate they are compared."""
    if not measured.groups:
        return
    table = Table("group", "people", "FMR", "FNMR", "95 % interval of the FMR", "of the FNMR")
    for group in measured.groups:
        rates = group.rates
        table.add_row(
            escape(group.group),
            f"{group.people:,}",
            write_rate(rates.fmr.value),
            write_rate(rates.fnmr.value),
            describe_interval(rates.fmr),
            describe_interval(rates.fnmr),
        )
    fmr, fnmr = compare_groups(measured.groups)
    ratio = ", ".join(
        f"{name} {value:.1f} times" if value else f"{name}: the best has none"
        for name, value in (("FMR", fmr), ("FNMR", fnmr))
    )
    rate = write_rate(max(target_fmr, round_up(measured.lowest_fmr)))
    asked = f", because {write_rate(target_fmr)} is not supported" if target_fmr < measured.lowest_fmr else ""
    threshold = measured.groups[0].rates.threshold
    console.print(f"\nAt FMR {rate}{asked}, the threshold {threshold:.4f}:", table)
    console.print(f"The worst group against the best: {ratio}.")
