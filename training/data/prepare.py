"""Cuts aligned crops out of raw photos, by the server's own steps: decode, detect, choose, align."""

import io
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from PIL import Image

from sameface.model.bundles.published import ARCFACE_TEMPLATE
from sameface.model.errors import SamefaceError
from sameface.model.faces import Pixels
from sameface.model.files import exclusive_lock, write_atomically
from sameface.model.observer import Progress, ignore_progress
from sameface.model.parallel import work_through
from sameface.model.photo.align import CropShape
from sameface.model.photo.image import PHOTO_NAMES, read_photo
from sameface.model.pipeline import FaceFinder, PipelineOptions, open_face_finder
from sameface.training.data.crop import CROP_SIDE
from sameface.training.data.dropped_photos import (
    REPORT,
    Dropped,
    read_report,
    read_version,
    refusing_unwritable,
    write_report,
)
from sameface.training.errors import DatasetRefused

LOCK = ".preparing"


@dataclass(frozen=True, slots=True)
class RawPhoto:
    """A photo to prepare, and the path of its crop."""

    name: str  # identity/file, as in the report
    path: Path
    crop: Path


Fate = Dropped | Literal["made", "already there"]


@dataclass(slots=True)
class Summary:
    """Counts of crops and dropped photos, of this run and earlier ones together."""

    identities: int
    photos: int
    crops_made: int = 0
    already_there: int = 0
    dropped: dict[str, int] = field(default_factory=dict)  # by reason
    report: str = ""


class FaceCutter:
    """Cuts the face that `policy` chooses out of a photo, on the pipeline's own path without a recogniser."""

    def __init__(self, finder: FaceFinder, policy: str) -> None:
        self.finder = finder
        self.policy = policy

    def cut(self, photo: bytes) -> Pixels:
        """The crop (112, 112, 3) of the chosen face; no face, or one that is too small, is an error."""
        return self.finder.find_one_face(photo, self.policy).faces[0].crop


def open_cutter(options: PipelineOptions, policy: str = "prominent") -> FaceCutter:
    """Load the detector, with a session per thread; crops lie on ArcFace's five points."""
    shape = CropShape(ARCFACE_TEMPLATE, (CROP_SIDE, CROP_SIDE))
    return FaceCutter(open_face_finder(options, shape), policy)


def prepare_faces(
    raw: Path, out: Path, cutter: FaceCutter, *, retry: bool = False, progress: Progress = ignore_progress
) -> Summary:
    """Make a crop in `out` for every photo in `raw` without one; `retry` also tries dropped photos."""
    raw, out = raw.expanduser().resolve(), out.expanduser().resolve()
    refuse_nesting(raw, out)
    identities = count_photos(raw)
    summary = Summary(len(identities), sum(identities.values()), report=str(out / REPORT))
    photos = (photo for folder in identities for photo in list_photos(folder, out))
    with locked(out):
        dropped = {} if retry else read_report(out / REPORT, raw)

        def prepare_one(photo: RawPhoto) -> tuple[RawPhoto, Fate]:
            return photo, prepare_photo(photo, cutter, dropped)

        try:
            with closing(work_through(prepare_one, photos, cutter.finder.options.threads)) as fates:
                for done, (photo, fate) in enumerate(fates, 1):
                    record_fate(photo, fate, summary, dropped)
                    progress("photos", done, summary.photos)
        finally:  # also when interrupted, so that the next run need not try them again
            write_report(out / REPORT, dropped.values())
    summary.dropped = dict(Counter(row.reason for row in dropped.values()).most_common())
    return summary


def record_fate(photo: RawPhoto, fate: Fate, summary: Summary, dropped: dict[str, Dropped]) -> None:
    """Count a photo's crop, or keep the reason why it has none."""
    if isinstance(fate, Dropped):
        dropped[photo.name] = fate
        return
    dropped.pop(photo.name, None)
    summary.crops_made += fate == "made"
    summary.already_there += fate == "already there"


def prepare_photo(photo: RawPhoto, cutter: FaceCutter, dropped: dict[str, Dropped]) -> Fate:
    """Make the crop of one photo, unless the crop exists or the photo was dropped before."""
    if photo.crop.exists():
        return "already there"
    if photo.name in dropped:
        return dropped[photo.name]
    version = read_version(photo.path) or ""
    try:
        crop = cutter.cut(read_photo(photo.path))
    except SamefaceError as error:
        return Dropped(photo.name, error.code, error.detail, version)
    with refusing_unwritable(photo.crop):
        photo.crop.parent.mkdir(exist_ok=True)
        write_atomically(photo.crop, encode_jpeg(crop))
    return "made"


def encode_jpeg(crop: Pixels) -> bytes:
    """The crop as JPEG, without chroma subsampling, which would show at this size."""
    content = io.BytesIO()
    Image.fromarray(crop).save(content, "JPEG", quality=95, subsampling=0)
    return content.getvalue()


def refuse_nesting(raw: Path, out: Path) -> None:
    """Refuse folders that contain one another: crops would be taken for photos, or photos for crops."""
    if not raw.is_dir():
        raise DatasetRefused(f"There is no folder {raw}.")
    if raw.is_relative_to(out) or out.is_relative_to(raw):
        raise DatasetRefused(f"{out} and {raw} must not lie in one another: crops and photos would mix.")


def count_photos(raw: Path) -> dict[Path, int]:
    """The identity folders that contain photos, and the number of photos in each."""
    entries = list_entries(raw)
    counts = {folder: len(list_image_names(folder)) for folder in entries if folder.is_dir()}
    identities = {folder: count for folder, count in counts.items() if count}
    if identities:
        return identities
    if any(PHOTO_NAMES.fullmatch(entry.name) for entry in entries):
        raise DatasetRefused(f"{raw} has photos in it, but no folders of them: put each person's into one.")
    raise DatasetRefused(f"{raw} has no folders of photos in it.")


def list_image_names(folder: Path) -> list[str]:
    """The names of the images in a folder."""
    return [path.name for path in list_entries(folder) if PHOTO_NAMES.fullmatch(path.name)]


def list_entries(folder: Path) -> list[Path]:
    """The sorted entries of a folder."""
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        raise DatasetRefused(f"{folder} cannot be read: {error.strerror}.") from error


def list_photos(folder: Path, out: Path) -> Iterator[RawPhoto]:
    """One identity's photos; crops of photos that share a stem, as a.jpg and a.png, keep the full name."""
    names = list_image_names(folder)
    stems = Counter(Path(name).stem for name in names)
    taken = set(names)
    for name in names:
        stem = Path(name).stem
        # A stem may also be the full name of another photo: a.png.jpg beside a.png.
        unique = stem if stems[stem] == 1 and stem not in taken else name
        yield RawPhoto(f"{folder.name}/{name}", folder / name, out / folder.name / f"{unique}.jpg")


@contextmanager
def locked(out: Path) -> Iterator[None]:
    """Create `out`, hold its lock within the block, and delete the partial files of a killed run."""
    with ExitStack() as stack:
        with refusing_unwritable(out):
            alone = stack.enter_context(exclusive_lock(out / LOCK))
        if not alone:
            raise DatasetRefused(f"Another process is preparing crops in {out}.")
        for part in out.glob("*/*.jpg.*.part"):
            part.unlink()
        yield
