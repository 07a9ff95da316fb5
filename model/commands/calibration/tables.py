"""How the command line shows a calibration: its rates, its groups, and how to serve by it."""

import os
import shlex
from pathlib import Path

from rich.markup import escape

from sameface.model.commands.console.terminal import console, new_table
from sameface.model.data_folder import DEFAULT_DATA
from sameface.model.decision.calibration import Calibration, ErrorRates, Rate
from sameface.model.decision.rates import round_up, write_rate
from sameface.model.decision.thresholds import TARGET_FMR
from sameface.model.measurement.fit_calibration import need_more
from sameface.model.measurement.groups import compare_groups


def show_calibration(measured: Calibration, target_fmr: float | None = None) -> None:
    """Print the people and rates of a calibration, and its groups, compared at `target_fmr` if possible."""
    evidence = measured.evidence
    console.print(
        f"[green]{escape(measured.name)}[/green]: {evidence.people:,} people, {evidence.faces:,} faces"
        f" ({evidence.failed:,} photos without), {evidence.genuine_pairs:,} genuine and"
        f" {evidence.impostor_pairs:,} impostor pairs",
        soft_wrap=True,
    )
    table = new_table("FMR", "threshold", "FNMR", "95 % interval of the FMR", "of the FNMR")
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


def show_groups(measured: Calibration, target_fmr: float | None) -> None:
    """Print the rates of the groups, if there are any, and at which rate they are compared."""
    if not measured.groups:
        return
    table = new_table("group", "people", "FMR", "FNMR", "95 % interval of the FMR", "of the FNMR")
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
    threshold = measured.groups[0].rates.threshold
    rate, asked = write_rate(measured.curve.fmr_at(threshold)), ""
    if target_fmr and target_fmr < measured.lowest_fmr:
        asked = f", because {write_rate(target_fmr)} is not supported"
    console.print(f"\nAt FMR {rate}{asked}, the threshold {threshold:.4f}:", table)
    console.print(f"The worst group against the best: {ratio}.")


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
