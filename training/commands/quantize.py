"""The command that makes a bundle of eight bits; it needs no torch."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.markup import escape

from sameface.model.bundles.bundle import Bundle, find_folder, load_bundle
from sameface.model.commands.console.options import Aligned, AsJson, BundleName, Data, Detector, by_name
from sameface.model.commands.console.terminal import (
    console,
    describe_bundle,
    new_table,
    print_json,
    report_counts,
    screen,
)
from sameface.model.data_folder import DEFAULT_DATA, DataFolder
from sameface.model.decision.calibration import Rate
from sameface.model.errors import UnsupportedImage
from sameface.model.photo.align import CropShape
from sameface.model.photo.image import ImageLimits, decode_image
from sameface.model.pipeline import PipelineOptions, open_face_finder
from sameface.training.export.bundle_folder import refuse_taken
from sameface.training.export.quantize import Comparison, quantize_bundle
from sameface.training.export.quantize_photos import Cut, read_photos

app = typer.Typer(callback=by_name)


@app.command()
def quantize(
    bundle: BundleName,
    photos: Annotated[Path, typer.Option(help="Photos like yours, best a folder for each person.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder of the new bundle; by default in the data folder.")
    ] = None,
    aligned: Aligned = False,
    faces: Annotated[int, typer.Option(min=60, help="Faces to measure on, at most.")] = 2000,
    min_cosine: Annotated[
        float, typer.Option(min=0.9, max=1, help="Of the embeddings to the exact ones, on average.")
    ] = 0.995,
    replace: Annotated[bool, typer.Option("--replace", help="Replace the bundle in the folder.")] = False,
    data: Data = DEFAULT_DATA,
    detector: Detector = None,
    as_json: AsJson = False,
) -> None:
    """Make a recogniser of eight bits of another one: measured beside it, and a model of its own."""
    folder = DataFolder(data)
    exact = load_bundle(find_folder(bundle, folder.models), "recogniser")
    target = out.expanduser().resolve() if out else folder.models / f"{exact.contract.name}-int8"
    refuse_taken(target, replacing=replace)  # before the long work
    cut = choose_cut(exact, folder, detector, aligned=aligned)
    with report_counts() as progress:
        read = read_photos(photos.expanduser(), cut, faces, progress)
        made, compared = quantize_bundle(exact, target, read, min_cosine, progress)
    if as_json:
        print_json(describe_bundle(made) | {"comparison": compared})
    else:
        show(made, exact, compared)


def choose_cut(bundle: Bundle, folder: DataFolder, detector: Path | None, *, aligned: bool) -> Cut:
    """The function that makes a crop of a picture's content: decode it, or find and align its face."""
    size = bundle.contract.input_size
    if aligned:
        return lambda content: read_crop(content, size)
    options = PipelineOptions.in_folder(folder, None, detector)
    finder = open_face_finder(options, CropShape(bundle.contract.template, size))
    return lambda content: finder.find_one_face(content, "prominent").faces[0].crop


def read_crop(content: bytes, size: tuple[int, int]) -> "np.ndarray":
    """The pixels of an aligned crop, which must have this size."""
    image = decode_image(content, ImageLimits())
    if image.size != size:
        raise UnsupportedImage(f"A crop must have {size[0]} x {size[1]} pixels.")
    return np.asarray(image)


def show(made: Bundle, exact: Bundle, compared: Comparison) -> None:
    """Print the two beside each other, and what is weak about the measurement on the error stream."""
    table = new_table("", exact.contract.name, made.contract.name)
    sizes = (f"{each.path.stat().st_size / 1e6:.1f} MB" for each in (exact, made))
    table.add_row("file", *sizes)
    speeds = compared.exact_crops_per_second, compared.crops_per_second
    table.add_row("crops/s on one thread", *(f"{speed:.0f}" for speed in speeds))
    table.add_row("engine", compared.exact_engine, compared.engine)
    for rates in compared.rates:
        table.add_row(f"FNMR at FMR {rates.fmr:g}", write(rates.first), write(rates.second))
    console.print(table)
    console.print(
        f"[green]{escape(made.contract.name)}[/green] is in {escape(str(made.folder))}: cosine"
        f" {compared.mean_cosine:.4f} to the exact embeddings, at worst {compared.worst_cosine:.4f}, on"
        f" {compared.faces:,} faces; {compared.exact_layers} of {compared.layers} layers stay in float32.",
        soft_wrap=True,
    )
    for warning in compared.warnings:
        screen.print(f"[yellow]{escape(warning)}[/yellow]", soft_wrap=True)


def write(rate: Rate) -> str:
    """A rate with its interval."""
    return f"{rate.value:.2%} ({rate.low:.2%} to {rate.high:.2%})"
