"""The commands that make crops to train on; they need no torch."""

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.markup import escape
from rich.table import Table

from sameface.model.commands.options import AsJson, Data, Detector, Device
from sameface.model.commands.terminal import console, print_json, report_counts
from sameface.model.data_folder import DEFAULT_DATA, DataFolder
from sameface.model.photo.image import ImageLimits
from sameface.model.pipeline import PipelineOptions
from sameface.training.data.prepare import Summary, open_cutter, prepare_faces
from sameface.training.data.synthetic.people import write_identities, write_pairs

app = typer.Typer()

LIMITS = ImageLimits(max_bytes=100_000_000)  # above the limit of uploads: these are the user's own files


@app.command()
def prepare(
    raw: Annotated[Path, typer.Argument(help="Folder of photos, in one folder per identity.")],
    out: Annotated[Path, typer.Argument(help="Where to write the crops, in the same folders.")],
    faces: Annotated[
        Literal["prominent", "largest", "only"], typer.Option(help="Which face to take.")
    ] = "prominent",
    retry: Annotated[bool, typer.Option("--retry", help="Look again at photos dropped before.")] = False,
    data: Data = DEFAULT_DATA,
    detector: Detector = None,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Cut aligned faces out of photos, to train on; run again, it goes on."""
    options = PipelineOptions.in_folder(DataFolder(data), None, detector, device=device, limits=LIMITS)
    cutter = open_cutter(options, faces)
    with report_counts() as progress:
        summary = prepare_faces(raw, out, cutter, retry=retry, progress=progress)
    if as_json:
        print_json(summary)
    else:
        show_summary(summary, out)


def show_summary(summary: Summary, out: Path) -> None:
    """Print the number of crops, and why the other photos were dropped."""
    crops = summary.crops_made + summary.already_there
    console.print(
        f"[green]{crops} crops[/green] of {summary.photos} photos of {summary.identities} identities are in "
        f"{escape(str(out))}: {summary.crops_made} made, {summary.already_there} already there.",
        soft_wrap=True,
    )
    if not summary.dropped:
        return
    table = Table("dropped because of", "photos")
    for reason, count in summary.dropped.items():
        table.add_row(reason, str(count))
    console.print(table)
    console.print(f"Each of them is in {escape(summary.report)}", soft_wrap=True)


@app.command()
def synthesize(
    out: Annotated[Path, typer.Argument(help="Where to write the crops, in one folder per identity.")],
    people: Annotated[int, typer.Option(min=5, help="How many identities.")] = 200,
    images: Annotated[int, typer.Option(min=2, help="How many crops of each.")] = 20,
    seed: Annotated[int, typer.Option(help="Another one draws other people.")] = 0,
) -> None:
    """Draw people who do not exist, to try training without anybody's photos, and list pairs of them."""
    with report_counts() as progress:
        write_identities(out.expanduser(), people, images, seed, progress)
    write_pairs(out.expanduser() / "pairs.txt", people, images)
    console.print(f"{people} drawn identities of {images} crops are in {escape(str(out))}", soft_wrap=True)
