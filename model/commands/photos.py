"""The commands about single photos: verify, detect, embed."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import typer

from sameface.model.commands.console.options import (
    AsJson,
    Data,
    Database,
    Detector,
    Device,
    InPrecision,
    PhotoFile,
    PrecisionFaces,
    Recognizer,
    faces_in,
)
from sameface.model.commands.console.pictures import save_picture
from sameface.model.commands.console.terminal import console, describe_decision, new_table, print_json
from sameface.model.data_folder import DEFAULT_DATA, DataFolder
from sameface.model.errors import SamefaceError
from sameface.model.photo.draw import draw_faces
from sameface.model.photo.image import decode_image, read_photo

app = typer.Typer()


@app.command()
def verify(
    probe: PhotoFile,
    reference: PhotoFile,
    threshold: Annotated[
        float | None, typer.Option(min=-1, max=1, help="Similarity that counts as the same.")
    ] = None,
    target_fmr: Annotated[
        float | None, typer.Option(help="False match rate to decide at, instead of a threshold.")
    ] = None,
    extrapolate: Annotated[
        bool, typer.Option("--extrapolate", help="Allow a rate beyond what the calibration's data supports.")
    ] = False,
    faces: Annotated[
        Literal["prominent", "largest", "only"], typer.Option(help="Which face to take.")
    ] = "prominent",
    data: Data = DEFAULT_DATA,
    database: Database = None,
    recognizer: Recognizer = None,
    detector: Detector = None,
    device: Device = "auto",
    precision: InPrecision = "auto",
    precision_faces: PrecisionFaces = None,
    as_json: AsJson = False,
) -> None:
    """Say whether two photos show the same person: exit code 0 if so, 1 if not."""
    files = {"probe": probe, "reference": reference}
    opening = faces_in(DataFolder(data, database), recognizer, detector, device, precision, precision_faces)
    with opening as opened, naming_the_photo(files):
        decision = opened.verify(
            probe,
            reference,
            threshold=threshold,
            target_fmr=target_fmr,
            extrapolate=extrapolate,
            faces=faces,
        )
    if as_json:
        print_json(decision)
    else:
        console.print(describe_decision(decision))
    raise typer.Exit(0 if decision.same_person else 1)


@contextmanager
def naming_the_photo(files: Mapping[str, Path]) -> Iterator[None]:
    """Put the file of the photo that an error is about, by the error's fact `image`, before its sentence."""
    try:
        yield
    except SamefaceError as error:
        if file := files.get(error.facts.get("image", "")):
            error.detail = f"{file}: {error.detail}"
        raise


@app.command()
def detect(
    photo: PhotoFile,
    draw: Annotated[
        Path | None, typer.Option(help="Write the photo with its faces marked to this file.")
    ] = None,
    data: Data = DEFAULT_DATA,
    database: Database = None,
    recognizer: Recognizer = None,
    detector: Detector = None,
    device: Device = "auto",
    precision: InPrecision = "auto",
    precision_faces: PrecisionFaces = None,
    as_json: AsJson = False,
) -> None:
    """Find the faces in a photo."""
    with faces_in(
        DataFolder(data, database), recognizer, detector, device, precision, precision_faces
    ) as opened:
        detection = opened.detect(photo)
        if draw:
            image = decode_image(read_photo(photo), opened.engine.options.limits)
            save_picture(draw_faces(image, detection.faces), draw)
    if as_json:
        print_json(detection)
        return
    table = new_table("left", "top", "width", "height", "score", "quality", "issues")
    for face in detection.faces:
        box = face.box
        numbers = (box.left, box.top, box.width, box.height, face.score, face.quality.score)
        table.add_row(*(f"{number:g}" for number in numbers), ", ".join(face.quality.issues))
    console.print(table if detection.faces else "No face was found.")


@app.command()
def embed(
    photo: PhotoFile,
    data: Data = DEFAULT_DATA,
    database: Database = None,
    recognizer: Recognizer = None,
    detector: Detector = None,
    device: Device = "auto",
    precision: InPrecision = "auto",
    precision_faces: PrecisionFaces = None,
    as_json: AsJson = False,
) -> None:
    """Print the unit embedding of every face in a photo."""
    with faces_in(
        DataFolder(data, database), recognizer, detector, device, precision, precision_faces
    ) as opened:
        embedded = opened.embed(photo)
    if as_json:
        print_json(embedded)
        return
    for face in embedded.faces:
        print(" ".join(f"{number:.6f}" for number in face.embedding))
    if not embedded.faces:
        console.print("No face was found.")
