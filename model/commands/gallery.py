"""The commands that keep people: enrol folders of them, ask who somebody is, list and forget them."""

import asyncio
import hashlib
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import track
from rich.table import Column, Table

from sameface.model import identify as identification
from sameface.model.commands.photos import AsJson, Data, Detector, Device, Recognizer, pipeline_for
from sameface.model.commands.terminal import console, print_json
from sameface.model.data_folder import DEFAULT_DATA, DataFolder
from sameface.model.decision.thresholds import Rule
from sameface.model.enroll import Application, Registrar
from sameface.model.errors import CannotServe, CollectionNotFound, InvalidId, SamefaceError
from sameface.model.gallery.gallery import Gallery, open_gallery
from sameface.model.identify import Question
from sameface.model.photo.image import PHOTO_NAMES, read_photo
from sameface.model.pipeline import Pipeline
from sameface.model.store.records import ID, Collection
from sameface.model.store.store import Store

app = typer.Typer()

PHOTOS_AT_ONCE = 16
PEOPLE_AT_ONCE = 1000

InCollection = Annotated[str, typer.Option("--collection", help="The collection's name.")]


def gallery_in(data: Path, pipeline: Pipeline) -> closing[Gallery]:
    """The gallery of one command, closed when it ends; a running server sees what is written at once."""
    return closing(open_gallery(DataFolder(data).gallery, pipeline))


@app.command()
def enroll(
    folder: Annotated[Path, typer.Argument(help="A folder with one folder of photos per person.")],
    collection: InCollection,
    store_crops: Annotated[bool, typer.Option(help="Keep the crops, if the collection is new.")] = False,
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
    report: dict[str, Any] = {"enrolled": 0, "already_there": 0, "rejected": []}
    with (
        pipeline_for(data, recognizer, detector, device) as pipeline,
        gallery_in(data, pipeline) as gallery,
    ):
        chosen = open_collection(gallery, collection, store_crops=store_crops)
        registrar = Registrar(pipeline, gallery)
        for person in track(people, "enrolling", console=console, transient=True, disable=as_json):
            enrol_folder(registrar, chosen, person, report)
    if as_json:
        print_json(report)
        return
    console.print(f"{report['enrolled']} photos enrolled, {report['already_there']} were there already.")
    if report["rejected"]:
        table = Table(Column("photo", overflow="fold"), "why not", title="rejected")
        for entry in report["rejected"]:
            table.add_row(entry["photo"], entry["detail"])
        console.print(table)


def open_collection(gallery: Gallery, name: str, *, store_crops: bool) -> Collection:
    """The collection as it is, or a new one."""
    try:
        return gallery.get_collection(name)
    except CollectionNotFound:
        if not ID.fullmatch(name):
            raise InvalidId(
                f"{name!r} cannot be a collection's name: use letters, digits and . _ ~ -"
            ) from None
        return gallery.create_collection(name, store_crops=store_crops)[0]


def enrol_folder(registrar: Registrar, collection: Collection, folder: Path, report: dict[str, Any]) -> None:
    """One person: all photos that are not enrolled yet, a few at a time."""
    paths = sorted(path for path in folder.iterdir() if PHOTO_NAMES.fullmatch(path.name))
    if not ID.fullmatch(folder.name):
        detail = "the folder's name cannot be an id: use letters, digits and . _ ~ -"
        report["rejected"] += [{"photo": str(path), "detail": detail} for path in paths]
        return
    for start in range(0, len(paths), PHOTOS_AT_ONCE):
        some = paths[start : start + PHOTOS_AT_ONCE]
        hashes = {path: hashlib.sha256(read_photo(path)).hexdigest() for path in some}
        known = registrar.gallery.store.people.owners_of_photos(collection, list(hashes.values()))
        mine = {photo for photo, people in known.items() if folder.name in people}
        new = [path for path in some if hashes[path] not in mine]
        report["already_there"] += len(some) - len(new)
        if new:
            enrol_photos(registrar, collection, folder.name, new, report)


def enrol_photos(
    registrar: Registrar, collection: Collection, person_id: str, paths: list[Path], report: dict[str, Any]
) -> None:
    """Some photos of one person, and what became of each."""
    photos = [read_photo(path) for path in paths]
    application = Application(person_id=person_id, photos=photos, may_exist=True)
    try:
        answer = asyncio.run(registrar.enrol(collection, application))
    except SamefaceError as error:
        if "rejected" not in error.facts:
            raise
        answer = {"faces": [], "rejected": error.facts["rejected"]}
    report["enrolled"] += len(answer["faces"])
    report["rejected"] += [
        {"photo": str(paths[entry["image"]]), "detail": entry["detail"]} for entry in answer["rejected"]
    ]


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
    question = Question(rule=Rule(threshold, target_fpir, extrapolate=True))
    with (
        pipeline_for(data, recognizer, detector, device) as pipeline,
        gallery_in(data, pipeline) as gallery,
    ):
        chosen = gallery.get_collection(collection)
        shown = track(
            paths, "identifying", console=console, transient=True, disable=as_json or len(paths) == 1
        )
        answers = [answer_for(pipeline, gallery, chosen, path, question) for path in shown]
    if as_json:
        print_json(answers, "embedding")
    else:
        show_answers(answers)
    if all("error" in answer for answer in answers):
        raise typer.Exit(2)
    matches = [result.match for answer in answers for result in answer.get("results", [])]
    raise typer.Exit(0 if all(matches) else 1)


def answer_for(
    pipeline: Pipeline, gallery: Gallery, collection: Collection, path: Path, question: Question
) -> dict[str, Any]:
    """Who is in one photo, or why nobody can tell."""
    try:
        found = asyncio.run(
            identification.identify(pipeline, gallery, collection.name, read_photo(path), question)
        )
    except SamefaceError as error:
        return {"photo": str(path), "error": {"code": error.code, "detail": error.detail}}
    return {"photo": str(path), "results": found.results}


def show_answers(answers: list[dict[str, Any]]) -> None:
    """One row per face."""
    table = Table(Column("photo", overflow="fold"), "person", "name", "similarity")
    for answer in answers:
        if "error" in answer:
            table.add_row(answer["photo"], f"[yellow]{answer['error']['detail']}[/yellow]")
        for result in answer.get("results", []):
            match = result.match
            best = f"{result.candidates[0].similarity:.3f}" if result.candidates else ""
            shown = (match.person_id, match.name or "") if match else ("[yellow]unknown[/yellow]", "")
            table.add_row(answer["photo"], *shown, best)
    console.print(table)


@app.command()
def people(
    collection: InCollection,
    data: Data = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """List the people of a collection."""
    with closing(Store(DataFolder(data).gallery)) as store:
        chosen, everybody, after = store.collections.get(collection), [], ""
        while page := store.people.page(chosen, PEOPLE_AT_ONCE, after):
            everybody += page
            after = page[-1].person_id
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
    with closing(Store(DataFolder(data).gallery)) as store:
        store.people.delete(store.collections.get(collection), person_id)
    if as_json:
        print_json({"forgotten": person_id})
    else:
        console.print(f"{person_id} is forgotten.")
