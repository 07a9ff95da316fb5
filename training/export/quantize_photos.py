"""The faces that set the ranges of eight bits, and the others on which the result is measured."""

import hashlib
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sameface.model.errors import SamefaceError
from sameface.model.faces import Keys, Pixels
from sameface.model.observer import Progress
from sameface.model.parallel import work_through
from sameface.model.photo.image import list_photo_files, read_photo
from sameface.model.runtime.device import available_cores
from sameface.training.errors import DatasetRefused
from sameface.training.export.variants import spread

Cut = Callable[[bytes], Pixels]  # a picture to its aligned face

FEWEST = 60  # faces: fewer set the ranges of a few people, and leave nothing to measure on
FEWEST_EACH = 10  # faces of each part: photos without a face may all be in one of them
RANGING = 200  # faces that set ranges; more change them little
IMAGES_EACH = 10  # of a person, to measure on


@dataclass(frozen=True, slots=True, eq=False)
class QuantizePhotos:
    """Crops to set ranges by, and other crops to measure on, with the person of each if folders tell."""

    name: str  # of the folder
    ranging: Pixels  # (crops, height, width, 3)
    trial: Pixels
    owners: Keys  # the person of each crop of the trial
    people: int  # 0: the photos are not labelled
    digests: dict[str, str]  # the SHA-256 of the trial's files, by their names
    warnings: tuple[str, ...]


def read_photos(folder: Path, cut: Cut, most: int, progress: Progress) -> QuantizePhotos:
    """Cut the faces out of the pictures in `folder`, at most `most` to measure on.

    A folder of folders is labelled: each is a person. Faces that measure are not those that set ranges.
    """
    paths = list_pictures(folder)
    labelled = all(path.parent != folder for path in paths)
    measured = choose_trial(paths, most, labelled=labelled)
    others = sorted(set(paths) - set(measured))
    contents = cut_all([*spread(others, RANGING), *measured], cut, progress)
    ranging = [crop for path, (crop, _) in contents.items() if path not in set(measured)]
    trial = {path: found for path, found in contents.items() if path in set(measured)}
    refuse_few(folder, len(ranging) + len(trial), len(paths))
    refuse_uneven(folder, len(ranging), len(trial))
    owners = np.unique([str(path.parent) for path in trial], return_inverse=True)[1].astype(np.int64)
    people = len(set(owners.tolist())) if labelled else 0
    return QuantizePhotos(
        name=folder.absolute().name,
        ranging=np.stack(ranging),
        trial=np.stack([crop for crop, _ in trial.values()]),
        owners=owners,
        people=people,
        digests={str(path.relative_to(folder)): digest for path, (_, digest) in trial.items()},
        warnings=warn(people, len(ranging), len(contents), len(measured) + len(spread(others, RANGING))),
    )


def list_pictures(folder: Path) -> list[Path]:
    """The pictures in a folder and its subfolders, sorted."""
    if not folder.is_dir():
        raise DatasetRefused(f"{folder} is no folder of photos.")
    paths = list_photo_files(folder)
    refuse_few(folder, len(paths), len(paths))
    return paths


def refuse_few(folder: Path, faces: int, photos: int) -> None:
    """Raise if there are too few faces to set ranges by and to measure on."""
    if faces < FEWEST:
        raise DatasetRefused(
            f"{folder} has {faces} faces in {photos} photos; it takes {FEWEST}, better {RANGING} and more, of"
            " many people and as your cameras see them."
        )


def refuse_uneven(folder: Path, ranging: int, trial: int) -> None:
    """Raise if nearly all photos without a face are among those that set ranges, or those to measure on."""
    if min(ranging, trial) < FEWEST_EACH:
        raise DatasetRefused(
            f"{folder} leaves {ranging} faces to set ranges by and {trial} others to measure on; it takes"
            f" {FEWEST_EACH} of each: leave out photos that show no face."
        )


def choose_trial(paths: list[Path], most: int, *, labelled: bool) -> list[Path]:
    """At most `most` pictures to measure on, and half of all at most: those of whole people, if labelled."""
    room = min(most, len(paths) // 2)
    people: dict[Path, list[Path]] = {}
    for path in paths:
        people.setdefault(path.parent, []).append(path)
    if not labelled or len(people) < 2:
        return spread(paths, room)
    chosen: list[Path] = []
    homes = list(people)
    for place in np.random.default_rng(0).permutation(len(homes)):
        some = people[homes[place]][:IMAGES_EACH]
        if len(chosen) + len(some) <= room:
            chosen += some
    return sorted(chosen)


def cut_all(paths: list[Path], cut: Cut, progress: Progress) -> dict[Path, tuple[Pixels, str]]:
    """The face and the SHA-256 of each picture; pictures without a face to cut are left out."""

    def try_one(path: Path) -> tuple[Pixels, str] | None:
        try:
            content = read_photo(path)
            return cut(content), hashlib.sha256(content).hexdigest()
        except SamefaceError:
            return None

    found: dict[Path, tuple[Pixels, str]] = {}
    with closing(work_through(try_one, paths, available_cores())) as results:
        for done, (path, result) in enumerate(zip(paths, results, strict=True), 1):
            if result:
                found[path] = result
            progress("reading photos", done, len(paths))
    return found


def warn(people: int, ranging: int, faces: int, read: int) -> tuple[str, ...]:
    """What is weak about the photos, in sentences."""
    warnings = []
    if people == 1:
        warnings.append("All photos are of one person: give those of 26 or more, a folder for each.")
    if not people:
        warnings.append("The photos are not in folders by person, so there are no error rates.")
    if faces < read:
        warnings.append(f"{read - faces} of {read} photos that were read have no face to cut.")
    if ranging < RANGING // 2:
        warnings.append(f"{ranging} faces that set ranges are few: {RANGING} photos or more set better ones.")
    return tuple(warnings)
