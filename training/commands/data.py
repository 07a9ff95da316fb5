"""The commands that make data to train and measure on: crops, drawn people, pairs; they need no torch."""

import shlex
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.markup import escape

from sameface.model.commands.console.options import AsJson, Data, Detector, Device
from sameface.model.commands.console.terminal import console, new_table, print_json, report_counts
from sameface.model.data_folder import DEFAULT_DATA, DataFolder
from sameface.model.files import write_atomically
from sameface.model.measurement.draw_pairs import DrawnPairs, draw_pairs
from sameface.model.measurement.errors import PairsRefused
from sameface.model.measurement.labelled_photos import digest_photos, list_people, refuse_duplicates
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
    table = new_table("dropped because of", "photos")
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
    as_json: AsJson = False,
) -> None:
    """Draw people who do not exist, and list pairs, to try training without anybody's photos."""
    folder = out.expanduser()
    with report_counts() as progress:
        write_identities(folder, people, images, seed, progress)
    write_pairs(folder / "pairs.txt", people, images)
    if as_json:
        print_json(
            {"folder": folder, "people": people, "images": people * images, "pairs": folder / "pairs.txt"}
        )
        return
    console.print(
        f"{people} drawn identities of {images} crops are in {escape(str(out))}, and pairs of them in"
        f" {escape(str(out / 'pairs.txt'))}",
        soft_wrap=True,
    )


@app.command()
def pairs(
    folder: Annotated[Path, typer.Argument(help="Photos or crops of people, a folder for each.")],
    out: Annotated[Path, typer.Option(help="The list to write.")] = Path("pairs.txt"),
    number: Annotated[
        int, typer.Option("--pairs", min=2, help="How many at most; half show one person, half two.")
    ] = 6000,
    folds: Annotated[int, typer.Option(min=1, help="Parts of the list, each of other people.")] = 10,
    seed: Annotated[int, typer.Option(help="Another one draws other pairs.")] = 0,
    replace: Annotated[bool, typer.Option("--replace", help="Replace the list.")] = False,
    as_json: AsJson = False,
) -> None:
    """List pairs of your own photos in the format of LFW, to measure accuracy on."""
    folder, out = folder.expanduser(), out.expanduser()
    if out.exists() and not replace:
        raise PairsRefused(f"{out} is there already: choose another --out, or --replace.")
    people = list_people(folder)
    digests = digest_photos(people)
    refuse_duplicates(folder, digests)
    different = {
        person: list({digests[photo]: photo.name for photo in photos}.values())
        for person, photos in people.items()
    }
    drawn = draw_pairs(different, number, folds, seed)
    try:
        write_atomically(out, drawn.write().encode())
    except OSError as error:
        raise PairsRefused(f"{out} cannot be written: {error.strerror}.") from error
    show_pairs(drawn, folder, out, as_json=as_json)


def show_pairs(drawn: DrawnPairs, folder: Path, out: Path, *, as_json: bool) -> None:
    """Print what was drawn, and what to do with it."""
    people, half = drawn.count_people(), drawn.pairs // 2
    if as_json:
        counts = {"pairs": drawn.pairs, "genuine": half, "impostor": half, "folds": len(drawn.folds)}
        print_json({"file": out, **counts, "people": len(people), "most_of_one_person": max(people.values())})
        return
    file, images = (escape(shlex.quote(str(path))) for path in (out, folder))
    console.print(
        f"[green]{drawn.pairs:,} pairs[/green] of {len(people):,} people are in {file}: {half:,}"
        f" of one person, {half:,} of two, in {len(drawn.folds)} folds of different people; nobody is in more"
        f" than {max(people.values()):,}.",
        f"In training: --set evaluation.pairs={file} --set evaluation.images={images}",
        f"With an export: --pairs {file} --images {images}",
        *([f"With any bundle: sameface evaluate BUNDLE {images}"] if out == folder / "pairs.txt" else []),
        sep="\n",
        soft_wrap=True,
    )
