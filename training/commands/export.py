"""The command that exports a checkpoint as a bundle."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from sameface.model.bundles.bundle import Bundle
from sameface.model.commands.console.options import AsJson, Data, by_name
from sameface.model.commands.console.terminal import console, describe_bundle, print_json
from sameface.model.data_folder import DEFAULT_DATA, DataFolder
from sameface.model.errors import BundleRefused
from sameface.training.export.bundle_folder import refuse_taken, variant_folder
from sameface.training.export.variants import VARIANTS, Trial, plan_trial

if TYPE_CHECKING:
    from sameface.training.export.export import Trained

app = typer.Typer()
bundle = typer.Typer(help="Make a bundle of a checkpoint.", no_args_is_help=True, callback=by_name)
app.add_typer(bundle, name="bundle")


@bundle.command()
def export(
    checkpoint: Annotated[Path, typer.Argument(help="What `sameface train` left, as last.pt.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder of the bundle; by default in the data folder.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Of the bundle; by default the recipe's.")] = None,
    licence: Annotated[str, typer.Option(help="What the owner of the data allows.")] = "unknown",
    variant: Annotated[
        list[str] | None, typer.Option(help=f"Also a smaller one, of {', '.join(VARIANTS)}; may be repeated.")
    ] = None,
    pairs: Annotated[
        Path | None, typer.Option(help="Pairs to measure accuracy on, in the format of LFW.")
    ] = None,
    images: Annotated[Path | None, typer.Option(help="Folder of the pairs' aligned crops.")] = None,
    max_loss: Annotated[float, typer.Option(min=0, max=1, help="Of accuracy, by a variant.")] = 0.005,
    calibration: Annotated[
        Path | None, typer.Option(help="Folder of crops that set the ranges of int8; else the pairs' crops.")
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace the bundle in the folder.")] = False,
    data: Data = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """Make a bundle of a checkpoint: ONNX, contract and model card, for `sameface serve --recognizer`."""
    # Here, because it loads torch, which a list of commands can do without.
    from sameface.training.export.export import (
        describe_contract,
        export_network,
        read_trained,
    )

    kinds = list(dict.fromkeys(variant or []))
    trial = read_trial(kinds, pairs, images, calibration, max_loss)
    trained = read_trained(checkpoint.expanduser())
    contract = describe_contract(trained, name or trained.name, licence)
    folder = out.expanduser().resolve() if out else DataFolder(data).models / contract.name
    for each in (folder, *(variant_folder(folder, kind) for kind in kinds)):
        refuse_taken(each, replacing=replace)
    exported = export_network(trained, contract, folder, trial)
    smaller = export_variants(kinds, exported, trained, trial) if trial else []
    show_bundles([exported, *smaller], as_json=as_json)


def read_trial(
    kinds: list[str], pairs: Path | None, images: Path | None, calibration: Path | None, max_loss: float
) -> Trial | None:
    """The trial that the options describe, None without pairs; variants need one."""
    if unknown := [kind for kind in kinds if kind not in VARIANTS]:
        raise BundleRefused(f"No variant is called {', '.join(unknown)}; known are {', '.join(VARIANTS)}.")
    if pairs and images:
        crops = calibration.expanduser() if calibration else None
        return plan_trial(pairs.expanduser(), images.expanduser(), crops, max_loss)
    if kinds or pairs or images:
        raise BundleRefused(
            "Accuracy is measured on pairs: give both --pairs FILE and --images FOLDER."
            " `sameface pairs FOLDER` makes such a file."
        )
    return None


def export_variants(kinds: list[str], exported: Bundle, trained: "Trained", trial: Trial) -> list[Bundle]:
    """Export the variants; if any is refused, raise an error that also lists the bundles that were kept."""
    from sameface.training.export.export import export_variant

    bundles, refusals = [], []
    for kind in kinds:
        try:
            bundles.append(export_variant(kind, exported, trained, trial))
        except BundleRefused as error:
            refusals.append(f"{kind} is refused: {error.detail}")
    if refusals:
        kept = ", ".join(str(bundle.folder) for bundle in (exported, *bundles))
        raise BundleRefused(f"{' '.join(refusals)} Kept: {kept}.")
    return bundles


def show_bundles(bundles: list[Bundle], *, as_json: bool) -> None:
    """Print each bundle and its measurements."""
    if as_json:
        print_json([describe_bundle(bundle) | {"parity": bundle.contract.parity} for bundle in bundles])
        return
    for bundle in bundles:
        facts = ", ".join(list_facts(bundle.contract.parity or {}))
        title = f"[green]{escape(bundle.contract.name)}[/green] is in {escape(str(bundle.folder))}"
        console.print(f"{title}: {facts}", soft_wrap=True)


def list_facts(parity: Any) -> list[str]:
    """Size, parity and accuracy, as far as they were measured."""
    facts = [f"{parity['size_bytes'] / 1e6:.2f} MB"]
    if "least_cosine" in parity:
        facts.append(f"cosine with torch {parity['least_cosine']:.7f}")
    if measured := parity.get("measured"):
        facts.append(f"accuracy {measured['accuracy']:.2%} on {measured['pairs']:,} pairs")
    return facts
