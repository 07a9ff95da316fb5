"""The command that says who is in a photo."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from sameface.collection import Collection
from sameface.in_process import Faces
from sameface.model.commands.console.options import (
    AsJson,
    Data,
    Database,
    Detector,
    Device,
    InCollection,
    Index,
    InPrecision,
    MilvusToken,
    MilvusUri,
    PrecisionFaces,
    Recognizer,
    by_name,
    faces_in,
)
from sameface.model.commands.console.pictures import save_picture
from sameface.model.commands.console.terminal import console, count, new_table, print_json, report_counts
from sameface.model.data_folder import DEFAULT_DATA, DataFolder, choose_milvus
from sameface.model.decision.rates import write_rate
from sameface.model.errors import CollectionNotFound, FolderRefused, SamefaceError
from sameface.model.gallery.identified import IdentifiedFace
from sameface.model.identify import Identification
from sameface.model.photo.draw import draw_faces
from sameface.model.photo.image import decode_image, list_photo_files, read_photo

app = typer.Typer(callback=by_name)


@app.command()
def identify(
    photo: Annotated[Path, typer.Argument(help="A photo, or a folder of them.")],
    collection: InCollection,
    threshold: Annotated[float | None, typer.Option(min=-1, max=1, help="Similarity of a match.")] = None,
    target_fpir: Annotated[
        float | None, typer.Option(help="False positive rate to decide at, instead of a threshold.")
    ] = None,
    draw: Annotated[
        Path | None, typer.Option(help="Write the photo with its faces, numbers and names to this file.")
    ] = None,
    data: Data = DEFAULT_DATA,
    database: Database = None,
    index: Index = "faiss",
    milvus_uri: MilvusUri = None,
    milvus_token: MilvusToken = None,
    recognizer: Recognizer = None,
    detector: Detector = None,
    device: Device = "auto",
    precision: InPrecision = "auto",
    precision_faces: PrecisionFaces = None,
    as_json: AsJson = False,
) -> None:
    """Say who is in a photo: exit code 0 if everybody is known, 1 if somebody is not."""
    paths = list_photos(photo) if photo.is_dir() else [photo]
    if draw and photo.is_dir():
        raise typer.BadParameter("draws one photo, and this is a folder.", param_hint="--draw")
    milvus = choose_milvus(index, milvus_uri, milvus_token)
    with faces_in(
        DataFolder(data, database, milvus), recognizer, detector, device, precision, precision_faces
    ) as opened:
        chosen = opened.collection(collection)
        outcomes = {path: search(chosen, path, threshold, target_fpir) for path in counted(paths)}
        found = outcomes[paths[0]]
        if isinstance(found, SamefaceError) and not photo.is_dir():
            found.detail = f"{photo}: {found.detail}"
            raise found
        if draw:
            draw_people(opened, photo, found, draw)
    if as_json:
        print_json(
            [describe_outcome(path, each) for path, each in outcomes.items()]
            if photo.is_dir()
            else outcomes[photo]
        )
    else:
        show_outcomes(outcomes, asked=threshold is not None)
    raise typer.Exit(to_exit_code(outcomes))


def counted(paths: list[Path]) -> Iterator[Path]:
    """Yield the paths, with a progress bar."""
    with report_counts() as progress:
        for done, path in enumerate(paths):
            progress("identifying", done, len(paths))
            yield path


def search(
    collection: Collection, photo: Path, threshold: float | None, target_fpir: float | None
) -> Identification | SamefaceError:
    """Who is in a photo, or why that cannot be said; a collection that does not exist raises."""
    try:
        return collection.identify(photo, threshold=threshold, target_fpir=target_fpir)
    except CollectionNotFound:
        raise
    except SamefaceError as error:
        return error


def list_photos(folder: Path) -> list[Path]:
    """The photos in a folder, at any depth; raises if there are none."""
    paths = list_photo_files(folder)
    if not paths:
        raise FolderRefused(f"There are no photos in {folder}.")
    return paths


def to_exit_code(outcomes: dict[Path, Identification | SamefaceError]) -> int:
    """0 if everybody is known, 1 if somebody is not, 2 if no photo could be searched for."""
    identified = [found for found in outcomes.values() if isinstance(found, Identification)]
    if not identified:
        return 2
    return 0 if all(result.match for found in identified for result in found.results) else 1


def describe_outcome(path: Path, outcome: Identification | SamefaceError) -> dict[str, Any]:
    """The JSON about one photo of several: what HTTP answers about it, or its error."""
    if isinstance(outcome, SamefaceError):
        return {
            "photo": str(path),
            "error": {"code": outcome.code, "detail": outcome.detail, **outcome.facts},
        }
    return {"photo": str(path), **outcome.to_dict()}


def show_outcomes(outcomes: dict[Path, Identification | SamefaceError], *, asked: bool) -> None:
    """Print a table with one row per face, then the photos that failed and what the decisions rest on.

    Of one photo it shows where the faces are, of several, to fit on a line, which photo.
    """
    several = len(outcomes) > 1
    where = ("photo", "face") if several else ("face", "left, top, size")
    table = new_table(*where, "person", "name", "similarity")
    for path, outcome in outcomes.items():
        if isinstance(outcome, Identification):
            for number, result in enumerate(outcome.results, 1):
                place = [escape(str(path)), str(number)] if several else [str(number), describe_place(result)]
                table.add_row(*place, *list_cells(result))
    if table.row_count:
        console.print(table)
    for path, outcome in outcomes.items():
        if isinstance(outcome, SamefaceError):
            console.print(f"[red]{outcome.code}[/red]: {escape(f'{path}: {outcome.detail}')}", soft_wrap=True)
    found = next((each for each in outcomes.values() if isinstance(each, Identification)), None)
    if found:
        console.print(describe_threshold(found, asked=asked), soft_wrap=True)


def describe_place(result: IdentifiedFace) -> str:
    """Where a face is in its photo, in pixels."""
    box = result.face.box if result.face else None
    return f"{box.left:.0f}, {box.top:.0f}, {box.width:.0f} x {box.height:.0f}" if box else ""


def list_cells(result: IdentifiedFace) -> list[str]:
    """The cells of a face: who it is, and the similarity of the closest person."""
    match = result.match
    who = [escape(match.person_id), escape(match.name or "")] if match else ["[yellow]unknown[/yellow]", ""]
    return [*who, f"{result.candidates[0].similarity:.3f}" if result.candidates else ""]


def describe_threshold(found: Identification, *, asked: bool) -> str:
    """What counts as a match, and the rate and the calibration that it comes from."""
    people = count(found.gallery_size, "person", "people")
    among = f"among {people} with {count(found.gallery_faces, 'face', 'faces')}"
    if asked:
        source = "as you asked"
    elif found.target_fpir is None:
        source = f"as published: {found.model} has no calibration"
    else:
        beyond = ", extrapolated" if found.extrapolated else ""
        source = f"for FPIR {write_rate(found.target_fpir)}{beyond}, by {found.calibration}"
    return escape(f"A match has a similarity of {found.threshold:.3f} or more {among}, {source}.")


def draw_people(opened: Faces, photo: Path, outcome: Identification | SamefaceError, file: Path) -> None:
    """Write the photo with a box, a number and a name for each face."""
    if not isinstance(outcome, Identification):
        return
    image = decode_image(read_photo(photo), opened.engine.options.limits)
    faces = [result.face for result in outcome.results if result.face]
    names = [
        f"{number} {(result.match.name or result.match.person_id) if result.match else 'unknown'}"
        for number, result in enumerate(outcome.results, 1)
    ]
    save_picture(draw_faces(image, faces, names), file)
