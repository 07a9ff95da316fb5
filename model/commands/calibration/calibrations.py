"""The commands about the calibrations of a bundle: list, show, remove, and choose the one that decides."""

import dataclasses
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from sameface.model.bundles.bundle import find_folder, load_bundle
from sameface.model.commands.calibration.tables import show_calibration, show_next, write_serve_line
from sameface.model.commands.console.answers import describe_list
from sameface.model.commands.console.options import AsJson, BundleName, Data, Database
from sameface.model.commands.console.terminal import console, new_table, print_json
from sameface.model.data_folder import DEFAULT_DATA, DataFolder
from sameface.model.decision.calibration import Calibration
from sameface.model.decision.calibration_files import Calibrations, share_files
from sameface.model.decision.rates import round_up, write_rate
from sameface.model.errors import CalibrationRefused
from sameface.model.store.records import write_time
from sameface.model.store.store import Store

app = typer.Typer()
calibrations = typer.Typer(
    help="List, show or remove a bundle's calibrations, or choose the one that decides.",
    no_args_is_help=True,
)
app.add_typer(calibrations, name="calibrations")

Name = Annotated[str, typer.Argument(help="The calibration's name.")]


def open_calibrations(bundle: Path, folder: DataFolder) -> Calibrations:
    """The calibrations of a recogniser, those that came with it and those in the gallery's database."""
    recogniser = load_bundle(find_folder(bundle, folder.models), "recogniser")
    return Calibrations(recogniser, gallery=folder.gallery)


def describe(calibration: Calibration, opened: Calibrations) -> dict[str, Any]:
    """A calibration, as GET /v1/calibrations answers it."""
    created = datetime.fromisoformat(calibration.created_at).timestamp()
    return calibration.describe() | {
        "default": calibration.name == opened.default_name,
        "created_at": write_time(created),
    }


@calibrations.command("list")
def list_all(
    bundle: BundleName, data: Data = DEFAULT_DATA, database: Database = None, as_json: AsJson = False
) -> None:
    """List the calibrations of a bundle, what they were measured on, and which one decides."""
    opened = open_calibrations(bundle, DataFolder(data, database))
    found = opened.list()
    if as_json:
        print_json(describe_list(describe(each, opened) for each in found))
        return
    table = new_table("calibration", "people", "rates from", "measured on", "made", "in use")
    for each in found:
        evidence = each.evidence
        counts = f"{evidence.people:,}", write_rate(round_up(each.lowest_fmr))
        used = "[green]yes[/green]" if each.name == opened.default_name else "no"
        table.add_row(
            escape(each.name.partition("/")[2]), *counts, escape(evidence.data), each.created_at[:10], used
        )
    name = escape(opened.bundle.contract.name)
    console.print(table if found else f"{name} has no calibrations: `sameface calibrate` makes one.")


@calibrations.command()
def show(
    bundle: BundleName,
    name: Name,
    data: Data = DEFAULT_DATA,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Show a calibration; with --json all of it, as a file in a bundle's folder has it."""
    opened = open_calibrations(bundle, DataFolder(data, database))
    found = opened.get(name)
    if as_json:
        print_json(dataclasses.asdict(found) | describe(found, opened))
        return
    show_calibration(found)
    in_use = found.name == opened.default_name
    show_next(found, write_serve_line(found, bundle, data, in_use=in_use), in_use=in_use)


@calibrations.command()
def remove(
    bundle: BundleName,
    name: Name,
    data: Data = DEFAULT_DATA,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Remove a calibration of your own; one that came with the bundle stays."""
    opened = open_calibrations(bundle, DataFolder(data, database))
    found = opened.get(name)
    if found.name not in opened.own:
        raise CalibrationRefused(
            f"{found.name} is a file in {opened.bundle.folder}: it belongs to the bundle."
        )
    with closing(Store(DataFolder(data, database).gallery)) as store:
        used = [each.name for each in store.collections.page() if each.calibration == found.name]
        if used:
            raise CalibrationRefused(f"{found.name} decides in these collections: {', '.join(used)}.")
        store.calibrations.remove(opened.bundle.identity, found.name.partition("/")[2])
    left = open_calibrations(bundle, DataFolder(data, database)).default_name
    if as_json:
        print_json({"removed": found.name, "default": left})
        return
    decides = f"{left} decides" if left else "no calibration decides"
    console.print(escape(f"{found.name} is removed; {decides} from the next start on."), soft_wrap=True)


@calibrations.command()
def default(
    bundle: BundleName,
    name: Name,
    data: Data = DEFAULT_DATA,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Choose the calibration that decides where neither a setting nor a collection names one."""
    opened = open_calibrations(bundle, DataFolder(data, database))
    found = opened.get(name)
    with closing(Store(DataFolder(data, database).gallery)) as store:
        store.calibrations.choose(opened.bundle.identity, found.name.partition("/")[2])
    command = write_serve_line(found, bundle, data, in_use=True)
    if as_json:
        print_json({"default": found.name, "serve": command})
    else:
        show_next(found, command, in_use=True)


@calibrations.command()
def share(
    bundle: BundleName, data: Data = DEFAULT_DATA, database: Database = None, as_json: AsJson = False
) -> None:
    """Have all machines that share the gallery decide by the bundle's files as they are on this one."""
    opened = open_calibrations(bundle, DataFolder(data, database))
    with closing(Store(DataFolder(data, database).gallery)) as store:
        shared = share_files(opened.bundle, store, replacing=True)
    if as_json:
        print_json({"shared": shared})
        return
    folder = escape(str(opened.bundle.folder))
    console.print(
        f"{folder} counts now: copy it to the machines that have other files, which do not start until then."
        if shared
        else "The gallery is this machine's alone: set SAMEFACE_DATABASE, or --database.",
        soft_wrap=True,
    )
