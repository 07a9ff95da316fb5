"""The commands about networks: pull, models, demo."""

import itertools
import multiprocessing
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from sameface.model.bundles.bundle import MANIFEST, Bundle, load_bundle, read_json, save_bundle
from sameface.model.bundles.contract import read_contract
from sameface.model.bundles.published import MODELS
from sameface.model.bundles.pull import pull_model, pull_portraits
from sameface.model.commands.console.answers import describe_list
from sameface.model.commands.console.options import (
    AsJson,
    Data,
    Database,
    Device,
    InPrecision,
    PrecisionFaces,
    faces_in,
)
from sameface.model.commands.console.terminal import (
    console,
    describe_bundle,
    new_table,
    print_json,
    report_bytes,
)
from sameface.model.data_folder import DEFAULT_DATA, DataFolder
from sameface.model.decision.calibration_files import name_chosen
from sameface.model.errors import BundleRefused
from sameface.model.runtime.prepare_graph import describe_precision
from sameface.model.runtime.session_pool import open_sessions

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

app = typer.Typer()

TRIAL_SECONDS = 120.0  # for a network to be prepared and run


@app.command()
def pull(
    names: Annotated[
        list[str] | None, typer.Argument(help=f"Of {', '.join(MODELS)}; all by default.")
    ] = None,
    source: Annotated[Path | None, typer.Option("--from", help="An ONNX recogniser of your own.")] = None,
    contract: Annotated[Path | None, typer.Option(help="The JSON contract of that recogniser.")] = None,
    data: Data = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """Fetch published networks, or make a bundle of your own recogniser."""
    folder = DataFolder(data)
    if (source is None) != (contract is None) or (source and names):
        raise BundleRefused(
            "Give names of published networks, or both --from FILE.onnx and --contract FILE.json."
        )
    if source and contract:
        bundles = [adopt_recogniser(source.expanduser(), contract.expanduser(), folder)]
    else:
        with report_bytes() as report:
            bundles = [pull_model(name, folder.models, report) for name in names or MODELS]
    if as_json:
        print_json([describe_bundle(bundle) for bundle in bundles])
        return
    for bundle in bundles:
        console.print(f"[green]{bundle.contract.name}[/green] is in {bundle.folder}", soft_wrap=True)


def adopt_recogniser(source: Path, contract_file: Path, folder: DataFolder) -> Bundle:
    """A bundle of the user's own recogniser, kept only if the network does what its contract says."""
    if not source.is_file():
        raise BundleRefused(f"There is no file {source}.")
    contract = read_contract(read_json(contract_file))
    if contract.kind != "recogniser":
        raise BundleRefused("Only a recogniser can be brought; the detector is YuNet.")
    if contract.name in {published.contract.name for published in MODELS.values()}:
        raise BundleRefused(f"{contract.name} is the name of a published network; choose another.")
    with tempfile.TemporaryDirectory() as trial:
        try_out(save_bundle(contract, source, Path(trial)), folder.cache)
    return save_bundle(contract, source, folder.models / contract.name)


def try_out(bundle: Bundle, cache: Path) -> None:
    """Run the network as its contract says, in a process of its own that is killed if it does not finish."""
    context = multiprocessing.get_context("spawn")
    inbox, outbox = context.Pipe(duplex=False)
    trial = context.Process(target=report_trial, args=(bundle, cache, outbox), daemon=True)
    trial.start()
    outbox.close()  # so that the end of the process is noticed
    try:
        if not inbox.poll(TRIAL_SECONDS):
            raise BundleRefused(f"The network did not finish within {TRIAL_SECONDS:g} seconds.")
        fault = inbox.recv()
    except EOFError:
        fault = "The network crashed the process that tried it."
    finally:
        trial.kill()
    if fault:
        raise BundleRefused(fault)


def report_trial(bundle: Bundle, cache: Path, outbox: "Connection") -> None:
    """In the process of a trial: send the fault of the network, None if it has none."""
    try:
        open_sessions(bundle, "cpu", cache)
        outbox.send(None)
    except BundleRefused as error:
        outbox.send(error.detail)


@app.command()
def models(data: Data = DEFAULT_DATA, database: Database = None, as_json: AsJson = False) -> None:
    """List the bundles in the data folder."""
    folders = sorted(path.parent for path in DataFolder(data).models.glob(f"*/{MANIFEST}"))
    bundles = [describe_folder(folder, DataFolder(data, database)) for folder in folders]
    if as_json:
        print_json(describe_list(bundles))
        return
    columns = ("name", "kind", "dimension", "calibration", "precision", "licence", "fault")
    table = new_table(*columns)
    for bundle in bundles:
        row = [bundle.get(column) for column in columns]
        table.add_row(*("" if value is None else escape(str(value)) for value in row))
    console.print(table if bundles else "There are no bundles yet: `sameface pull` fetches the default ones.")


def describe_folder(folder: Path, data: DataFolder) -> dict[str, Any]:
    """The fields of the bundle in a folder and its precision here when it last ran, or its name and fault."""
    try:
        bundle = name_chosen(load_bundle(folder), data.gallery)
        return describe_bundle(bundle) | describe_precision(bundle, data.cache)
    except BundleRefused as error:
        return {"name": folder.name, "fault": error.detail}


@app.command()
def demo(
    data: Data = DEFAULT_DATA,
    database: Database = None,
    device: Device = "auto",
    precision: InPrecision = "auto",
    precision_faces: PrecisionFaces = None,
    as_json: AsJson = False,
) -> None:
    """Fetch three official portraits, two of one person, and compare them."""
    folder = DataFolder(data)
    with report_bytes() as report:
        paths = pull_portraits(folder.demo, report)
    pairs = list(itertools.combinations(paths, 2))
    with faces_in(DataFolder(data, database), None, None, device, precision, precision_faces) as opened:
        decisions = [opened.verify(probe, reference) for probe, reference in pairs]
    if as_json:
        print_json(decisions)
        return
    table = new_table("probe", "reference", "similarity", "threshold", "same person")
    for (probe, reference), decision in zip(pairs, decisions, strict=True):
        verdict = "[green]yes[/green]" if decision.same_person else "no"
        numbers = f"{decision.similarity:.3f}", f"{decision.threshold:.3f}"
        table.add_row(probe.name, reference.name, *numbers, verdict)
    console.print(table)
    console.print(f"The portraits are in {folder.demo}", soft_wrap=True)
