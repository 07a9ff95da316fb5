"""The commands of the model's room: what can be asked without a server."""

import asyncio
import itertools
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from PIL import Image
from rich.markup import escape
from rich.table import Table

from sameface.model.bundles.bundle import MANIFEST, Bundle, load_bundle, read_json, save_bundle
from sameface.model.bundles.contract import read_contract
from sameface.model.bundles.published import MODELS
from sameface.model.bundles.pull import pull_model, pull_portraits
from sameface.model.commands.terminal import (
    console,
    describe_bundle,
    describe_decision,
    print_json,
    report_downloads,
)
from sameface.model.data_folder import DEFAULT_DATA, DataFolder
from sameface.model.decision.thresholds import Rule
from sameface.model.errors import BundleRefused, UnsupportedImage
from sameface.model.photo.draw import draw_faces
from sameface.model.photo.image import decode_image, read_photo
from sameface.model.pipeline import Pipeline, PipelineOptions, open_pipeline
from sameface.model.runtime.session_pool import open_sessions

app = typer.Typer()

Photo = Annotated[Path, typer.Argument(help="A JPEG, PNG, WebP or BMP file.")]
Data = Annotated[Path, typer.Option("--data", envvar="SAMEFACE_DATA", help="Folder for models and all else.")]
Recognizer = Annotated[
    Path | None,
    typer.Option("--recognizer", envvar="SAMEFACE_RECOGNIZER", help="Folder of a recogniser's bundle."),
]
Detector = Annotated[
    Path | None, typer.Option("--detector", envvar="SAMEFACE_DETECTOR", help="Folder of a detector's bundle.")
]
Device = Annotated[
    Literal["auto", "cpu", "gpu"], typer.Option("--device", envvar="SAMEFACE_DEVICE", help="What to run on.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Extrapolate = Annotated[
    bool, typer.Option("--extrapolate", help="Allow a rate beyond what the calibration's data supports.")
]


def save_picture(picture: Image.Image, path: Path) -> None:
    """Write a picture in the format that its name asks for."""
    try:
        picture.save(path)
    except (OSError, ValueError) as error:
        raise UnsupportedImage(f"{path} cannot be written: {error}.") from error


def pipeline_for(
    data: Path, recognizer: Path | None, detector: Path | None, device: str
) -> closing[Pipeline]:
    """The pipeline of one command, closed when it ends."""
    options = PipelineOptions.in_folder(DataFolder(data), recognizer, detector, device=device)
    return closing(open_pipeline(options))


@app.command()
def verify(
    probe: Photo,
    reference: Photo,
    threshold: Annotated[
        float | None, typer.Option(min=-1, max=1, help="Similarity that counts as the same.")
    ] = None,
    target_fmr: Annotated[
        float | None, typer.Option(help="False match rate to decide at, instead of a threshold.")
    ] = None,
    extrapolate: Extrapolate = False,
    faces: Annotated[
        Literal["prominent", "largest", "only"], typer.Option(help="Which face to take.")
    ] = "prominent",
    data: Data = DEFAULT_DATA,
    recognizer: Recognizer = None,
    detector: Detector = None,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Say whether two photos show the same person: exit code 0 if so, 1 if not."""
    rule = Rule(threshold, target_fmr, extrapolate)
    photos = read_photo(probe), read_photo(reference)
    with pipeline_for(data, recognizer, detector, device) as pipeline:
        decision = asyncio.run(pipeline.verify(*photos, rule=rule, faces=faces))
    if as_json:
        print_json(decision, "embedding")
    else:
        console.print(describe_decision(decision))
    raise typer.Exit(0 if decision.same_person else 1)


@app.command()
def detect(
    photo: Photo,
    draw: Annotated[
        Path | None, typer.Option(help="Write the photo with its faces marked to this file.")
    ] = None,
    data: Data = DEFAULT_DATA,
    recognizer: Recognizer = None,
    detector: Detector = None,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Find the faces in a photo."""
    content = read_photo(photo)
    with pipeline_for(data, recognizer, detector, device) as pipeline:
        look = asyncio.run(pipeline.detect(content))
        if draw:
            save_picture(draw_faces(decode_image(content, pipeline.options.limits), look.faces), draw)
    if as_json:
        print_json(look)
        return
    table = Table("left", "top", "width", "height", "score", "quality", "issues")
    for face in look.faces:
        numbers = (
            face.box.left,
            face.box.top,
            face.box.width,
            face.box.height,
            face.score,
            face.quality.score,
        )
        table.add_row(*(f"{number:g}" for number in numbers), ", ".join(face.quality.issues))
    console.print(table if look.faces else "No face was found.")


@app.command()
def embed(
    photo: Photo,
    data: Data = DEFAULT_DATA,
    recognizer: Recognizer = None,
    detector: Detector = None,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Print the unit embedding of every face in a photo."""
    content = read_photo(photo)
    with pipeline_for(data, recognizer, detector, device) as pipeline:
        look = asyncio.run(pipeline.embed(content))
    if as_json:
        print_json(look)
        return
    for face in look.faces:
        print(" ".join(f"{number:.6f}" for number in face.embedding.values))
    if not look.faces:
        console.print("No face was found.")


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
        with report_downloads() as report:
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
        open_sessions(save_bundle(contract, source, Path(trial)), "cpu", folder.cache)
    return save_bundle(contract, source, folder.models / contract.name)


@app.command()
def models(data: Data = DEFAULT_DATA, as_json: AsJson = False) -> None:
    """List the bundles in the data folder."""
    folders = sorted(path.parent for path in DataFolder(data).models.glob(f"*/{MANIFEST}"))
    bundles = [describe_folder(folder) for folder in folders]
    if as_json:
        print_json(bundles)
        return
    columns = ("name", "kind", "dimension", "calibration", "licence", "fault")
    table = Table(*columns)
    for bundle in bundles:
        row = [bundle.get(column) for column in columns]
        table.add_row(*("" if value is None else escape(str(value)) for value in row))
    console.print(table if bundles else "There are no bundles yet: `sameface pull` fetches the default ones.")


def describe_folder(folder: Path) -> dict[str, Any]:
    """The bundle in a folder, or what is wrong with it."""
    try:
        return describe_bundle(load_bundle(folder))
    except BundleRefused as error:
        return {"name": folder.name, "fault": error.detail}


@app.command()
def demo(data: Data = DEFAULT_DATA, device: Device = "auto", as_json: AsJson = False) -> None:
    """Fetch three official portraits, two of one person, and compare them."""
    folder = DataFolder(data)
    with report_downloads() as report:
        paths = pull_portraits(folder.demo, report)
    pairs = list(itertools.combinations(paths, 2))
    with pipeline_for(data, None, None, device) as pipeline:
        decisions = [
            asyncio.run(pipeline.verify(read_photo(probe), read_photo(reference)))
            for probe, reference in pairs
        ]
    if as_json:
        print_json(decisions, "embedding")
        return
    table = Table("probe", "reference", "similarity", "threshold", "same person")
    for (probe, reference), decision in zip(pairs, decisions, strict=True):
        verdict = "[green]yes[/green]" if decision.same_person else "no"
        table.add_row(
            probe.name, reference.name, f"{decision.similarity:.3f}", f"{decision.threshold}", verdict
        )
    console.print(table)
    console.print(f"The portraits are in {folder.demo}", soft_wrap=True)
