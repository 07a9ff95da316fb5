"""The command that enrols folders of people."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from sameface.collection import Collection
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
from sameface.model.commands.console.terminal import (
    console,
    count,
    describe_warning,
    print_json,
    report_counts,
    show_reasons,
)
from sameface.model.data_folder import DEFAULT_DATA, DataFolder, choose_milvus
from sameface.model.enroll import EnrolledFace, Rejection
from sameface.model.enroll_warnings import EnrollWarning
from sameface.model.errors import FolderRefused, PersonNotFound, SamefaceError
from sameface.model.faces import Value, to_plain
from sameface.model.photo.image import PHOTO_NAMES, read_photo
from sameface.model.store.people.person_ids import choose_id
from sameface.model.store.records import MAX_NAME, is_id

app = typer.Typer(callback=by_name)


PHOTOS_AT_ONCE = 16


@dataclass(slots=True)
class FolderReport(Value):
    """What became of a person's folder, as HTTP answers an enrolment; `image` is a place in `photos`."""

    folder: Path
    photos: list[str]
    person_id: str
    name: str
    faces: list[EnrolledFace] = field(default_factory=list)
    rejected: list[Rejection] = field(default_factory=list)
    warnings: list[EnrollWarning] = field(default_factory=list)
    already_there: int = 0

    @property
    def error(self) -> dict[str, Any] | None:
        """Why nobody is enrolled, as HTTP says it; None if somebody is."""
        if self.faces or self.already_there:
            return None
        if not self.rejected:
            return {"code": FolderRefused.code, "detail": "There are no photos in the folder."}
        first = self.rejected[0]
        return {"code": first.code, "detail": first.detail, "rejected": to_plain(self.rejected)}

    def to_dict(self) -> dict[str, Any]:
        """The folder with the enrolment, or with the error that kept the person out."""
        if not self.error:
            return Value.to_dict(self)
        return {"folder": str(self.folder), "photos": self.photos, "error": self.error}

    def reject(self, place: int, code: str, detail: str) -> None:
        """Add a photo that was not enrolled, and why."""
        self.rejected.append(Rejection(place, code, detail))


@app.command()
def enroll(
    folder: Annotated[Path, typer.Argument(help="A folder with one folder of photos per person.")],
    collection: InCollection,
    store_crops: Annotated[
        bool, typer.Option("--store-crops", help="Keep the crops, if the collection is new.")
    ] = False,
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
    """Enrol everybody in a folder; run again, it goes on. Exit code 1 if somebody was not enrolled."""
    people = list_people(folder.expanduser())
    milvus = choose_milvus(index, milvus_uri, milvus_token)
    opening = faces_in(
        DataFolder(data, database, milvus), recognizer, detector, device, precision, precision_faces
    )
    with opening as opened, report_counts() as progress:
        opened.engine.gallery.get_or_create_collection(collection, store_crops=store_crops)
        chosen = opened.collection(collection)
        reports = plan_reports(chosen, people)
        for done, report in enumerate(reports):
            progress("enrolling", done, len(reports))
            enroll_folder(chosen, report)
    if as_json:
        print_json(summarise(reports) | {"items": reports})
    else:
        show_reports(reports, collection)
    raise typer.Exit(1 if any(report.error for report in reports) else 0)


def list_people(folder: Path) -> list[Path]:
    """The folders in `folder`, one per person; raises if there are none."""
    if not folder.is_dir():
        raise FolderRefused(f"There is no folder {folder}.")
    people = sorted(path for path in folder.iterdir() if path.is_dir())
    if not people:
        raise FolderRefused(f"{folder} has no folders in it: put the photos of each person into one.")
    return people


def plan_reports(collection: Collection, folders: list[Path]) -> list[FolderReport]:
    """A report per folder, with the id and the name of its person; names that are ids are served first."""

    def find_name(person_id: str) -> str | None:
        try:
            return collection.person(person_id).name
        except PersonNotFound:
            return None

    ids: dict[Path, str] = {}
    for folder in sorted(folders, key=lambda folder: (not is_id(folder.name), folder.name)):
        ids[folder] = choose_id(to_text(folder.name), set(ids.values()), find_name)
    return [
        FolderReport(folder, sorted(list_photos(folder)), ids[folder], to_text(folder.name))
        for folder in folders
    ]


def to_text(name: str) -> str:
    """A folder's name as a person's name: bytes that are no text are replaced, and it is not too long."""
    return name.encode("utf-8", "replace").decode()[:MAX_NAME]


def list_photos(folder: Path) -> list[str]:
    """The names of the photos in a folder."""
    return [path.name for path in folder.iterdir() if PHOTO_NAMES.fullmatch(path.name)]


def enroll_folder(collection: Collection, report: FolderReport) -> None:
    """Enrol one person: the folder's photos that are not enrolled yet, a few at a time."""
    for start in range(0, len(report.photos), PHOTOS_AT_ONCE):
        photos: dict[int, bytes] = {}
        for place in range(start, min(start + PHOTOS_AT_ONCE, len(report.photos))):
            try:
                photos[place] = read_photo(report.folder / report.photos[place])
            except SamefaceError as error:
                report.reject(place, error.code, error.detail)
        owners = collection.find_photos(list(photos.values()))
        known = [place for place, ids in zip(photos, owners, strict=True) if report.person_id in ids]
        report.already_there += len(known)
        new = {place: photo for place, photo in photos.items() if place not in known}
        if new:
            enroll_photos(collection, new, report)


def enroll_photos(collection: Collection, photos: dict[int, bytes], report: FolderReport) -> None:
    """Enrol photos, by their place in the folder, of one person, and add their outcome to the report."""
    places = list(photos)
    try:
        enrolment = collection.enroll_or_add(report.person_id, list(photos.values()), name=report.name)
    except SamefaceError as error:
        if "rejected" not in error.facts:  # not about the photos: the disk is full, say
            raise
        for entry in error.facts["rejected"]:
            report.reject(places[entry["image"]], entry["code"], entry["detail"])
        return
    report.faces += [replace(face, image=places[face.image]) for face in enrolment.faces]
    report.rejected += [replace(each, image=places[each.image]) for each in enrolment.rejected]
    report.warnings += enrolment.warnings


def summarise(reports: list[FolderReport]) -> dict[str, int]:
    """The numbers of photos that were enrolled or known already, and of people who are not enrolled."""
    return {
        "enrolled": sum(len(report.faces) for report in reports),
        "already_there": sum(report.already_there for report in reports),
        "not_enrolled": sum(report.error is not None for report in reports),
    }


def show_reports(reports: list[FolderReport], collection: str) -> None:
    """Print what was enrolled, who was not, which photos were rejected, and what looks odd."""
    numbers, people = summarise(reports), sum(not report.error for report in reports)
    enrolled = count(numbers["enrolled"], "photo", "photos")
    console.print(
        f"{enrolled} enrolled, {numbers['already_there']:,} there already: {people:,} of"
        f" {count(len(reports), 'person is', 'people are')} in {escape(collection)}.",
        soft_wrap=True,
    )
    show_reasons("not enrolled", "folder", [(r.folder, r.error["detail"]) for r in reports if r.error])
    rejected = [(r.folder / r.photos[each.image], each.detail) for r in reports for each in r.rejected]
    show_reasons("rejected", "photo", rejected)
    show_reasons("enrolled, but look at these", "photo", [row for r in reports for row in list_warnings(r)])


def list_warnings(report: FolderReport) -> list[tuple[Path, str]]:
    """For each warning the photo that it is about, and what is odd about it, in words."""
    photos = {face.face_id: report.photos[face.image] for face in report.faces}
    return [
        (report.folder / photos[warning.face_id], describe_warning(warning)) for warning in report.warnings
    ]
