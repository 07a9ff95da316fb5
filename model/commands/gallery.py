"""The commands about people: enrol folders of them, ask who somebody is, list and forget them."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import track
from rich.table import Column, Table

from sameface.collection import Collection
from sameface.model.commands.options import (
    AsJson,
    Data,
    Detector,
    Device,
    InCollection,
    Recognizer,
    faces_in,
)
from sameface.model.commands.terminal import console, print_json
from sameface.model.data_folder import DEFAULT_DATA
from sameface.model.errors import CannotServe, CollectionNotFound, SamefaceError
from sameface.model.faces import Value
from sameface.model.identify import Identification
from sameface.model.photo.image import PHOTO_NAMES, read_photo
from sameface.model.store.records import is_id

app = typer.Typer()

PHOTOS_AT_ONCE = 16


@dataclass(slots=True)
class EnrollReport(Value):
    """The numbers of photos that were enrolled or known already, and the rejected photos."""

    enrolled: int = 0
    already_there: int = 0
    rejected: list[dict[str, str]] = field(default_factory=list)  # photo and detail

    def reject(self, photo: Path, detail: str) -> None:
        """Add a photo that was not enrolled, and why."""
        self.rejected.append({"photo": str(photo), "detail": detail})


@app.command()
def enroll(
    folder: Annotated[Path, typer.Argument(help="A folder with one folder of photos per person.")],
    collection: InCollection,
    store_crops: Annotated[
        bool, typer.Option("--store-crops", help="Keep the crops, if the collection is new.")
    ] = False,
    data: Data = DEFAULT_DATA,
    recognizer: Recognizer = None,
    detector: Detector = None,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Enrol everybody in a folder; run it again and it goes on where it stopped."""
    people = sorted(path for path in folder.expanduser().glob("*") if path.is_dir())
    if not people:
        raise CannotServe(f"{folder} has no folders of photos in it.")
    report = EnrollReport()
    with faces_in(data, recognizer, detector, device) as opened:
        chosen = opened.collection(collection, store_crops=store_crops)
        opened.engine.gallery.get_or_create_collection(collection, store_crops=store_crops)
        for person in track(people, "enrolling", console=console, transient=True, disable=as_json):
            enroll_folder(chosen, person, report)
    if as_json:
        print_json(report)
        return
    console.print(f"{report.enrolled} photos enrolled, {report.already_there} were there already.")
    if report.rejected:
        table = Table(Column("photo", overflow="fold"), "why not", title="rejected")
        for entry in report.rejected:
            table.add_row(entry["photo"], entry["detail"])
        console.print(table)


def enroll_folder(collection: Collection, folder: Path, report: EnrollReport) -> None:
    """Enrol one person: the folder's photos that are not enrolled yet, a few at a time."""
    paths = sorted(path for path in folder.iterdir() if PHOTO_NAMES.fullmatch(path.name))
    if not is_id(folder.name):
        for path in paths:
            report.reject(path, "the folder's name cannot be an id: use letters, digits and . _ ~ -")
        return
    for start in range(0, len(paths), PHOTOS_AT_ONCE):
        photos = {path: read_photo(path) for path in paths[start : start + PHOTOS_AT_ONCE]}
        owners = collection.find_photos(list(photos.values()))
        new = {
            path: photo
            for (path, photo), people in zip(photos.items(), owners, strict=True)
            if folder.name not in people
        }
        report.already_there += len(photos) - len(new)
        if new:
            enroll_photos(collection, folder.name, new, report)


def enroll_photos(
    collection: Collection, person_id: str, photos: dict[Path, bytes], report: EnrollReport
) -> None:
    """Enrol photos of one person, new or known, and add their outcome to the report."""
    paths = list(photos)
    try:
        enrolment = collection.enroll_or_add(person_id, list(photos.values()))
    except SamefaceError as error:
        if "rejected" not in error.facts:  # not about the photos: the disk is full, say
            raise
        rejected = [(entry["image"], entry["detail"]) for entry in error.facts["rejected"]]
    else:
        report.enrolled += len(enrolment.faces)
        rejected = [(rejection.image, rejection.detail) for rejection in enrolment.rejected]
    for place, detail in rejected:
        report.reject(paths[place], detail)


@app.command()
def identify(
    photo: Annotated[Path, typer.Argument(help="A photo, or a folder of them.")],
    collection: InCollection,
    threshold: Annotated[float | None, typer.Option(min=-1, max=1, help="Similarity of a match.")] = None,
    target_fpir: Annotated[
        float | None, typer.Option(help="False positive rate to decide at, instead of a threshold.")
    ] = None,
    data: Data = DEFAULT_DATA,
    recognizer: Recognizer = None,
    detector: Detector = None,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Say who is in a photo: exit code 0 if everybody is known, 1 if somebody is not."""
    paths = [photo]
    if photo.is_dir():
        paths = sorted(path for path in photo.rglob("*") if PHOTO_NAMES.fullmatch(path.name))
    outcomes: dict[Path, Identification | SamefaceError] = {}
    with faces_in(data, recognizer, detector, device) as opened:
        chosen = opened.collection(collection)
        alone = as_json or len(paths) == 1
        for path in track(paths, "identifying", console=console, transient=True, disable=alone):
            try:
                outcomes[path] = chosen.identify(path, threshold=threshold, target_fpir=target_fpir)
            except CollectionNotFound:
                raise
            except SamefaceError as error:
                outcomes[path] = error
    if as_json:
        print_json([describe_outcome(path, outcome) for path, outcome in outcomes.items()])
    else:
        show_outcomes(outcomes)
    identified = [found for found in outcomes.values() if isinstance(found, Identification)]
    if outcomes and not identified:
        raise typer.Exit(2)
    raise typer.Exit(0 if all(result.match for found in identified for result in found.results) else 1)


def describe_outcome(path: Path, outcome: Identification | SamefaceError) -> dict[str, object]:
    """The JSON about one photo: its results, or its error."""
    if isinstance(outcome, SamefaceError):
        return {"photo": str(path), "error": {"code": outcome.code, "detail": outcome.detail}}
    return {"photo": str(path), "results": outcome.results}


def show_outcomes(outcomes: dict[Path, Identification | SamefaceError]) -> None:
    """Print a table with one row per face."""
    table = Table(Column("photo", overflow="fold"), "person", "name", "similarity")
    for path, outcome in outcomes.items():
        if isinstance(outcome, SamefaceError):
            table.add_row(str(path), f"[yellow]{outcome.detail}[/yellow]")
            continue
        for result in outcome.results:
            match = result.match
            closest = f"{result.candidates[0].similarity:.3f}" if result.candidates else ""
            shown = (match.person_id, match.name or "") if match else ("[yellow]unknown[/yellow]", "")
            table.add_row(str(path), *shown, closest)
    console.print(table)


@app.command()
def people(collection: InCollection, data: Data = DEFAULT_DATA, as_json: AsJson = False) -> None:
    """List the people of a collection."""
    with faces_in(data, None, None, "auto") as opened:
        everybody = list(opened.collection(collection).people())
    if as_json:
        print_json(everybody)
        return
    table = Table("person", "name", "faces")
    for person in everybody:
        table.add_row(person.person_id, person.name or "", str(len(person.faces)))
    console.print(table)


@app.command()
def forget(
    person_id: Annotated[str, typer.Argument(help="The person's id.")],
    collection: InCollection,
    data: Data = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """Forget a person: gone from every answer once this returns."""
    with faces_in(data, None, None, "auto") as opened:
        opened.collection(collection).forget(person_id)
    if as_json:
        print_json({"forgotten": person_id})
    else:
        console.print(f"{person_id} is forgotten.")
