"""A folder of labelled photos, one folder per person, to the embeddings of its faces."""

import hashlib
import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from sameface.model.measurement.embed_photos import Embed, Failure, embed_all
from sameface.model.measurement.errors import LabelsRefused
from sameface.model.measurement.scores import LabelledEmbeddings, to_step, walk_tiles
from sameface.model.observer import Progress, ignore_progress
from sameface.model.photo.image import PHOTO_NAMES, read_photo

SHOWN = 10  # entries of a list in an error's sentence
MOST_LOOKALIKES = 50


@dataclass(frozen=True, slots=True)
class Lookalikes:
    """Two very similar photos from the folders of two people; often they show one person."""

    file: str
    other: str
    similarity: float


@dataclass(frozen=True, slots=True, eq=False)
class LabelledFaces:
    """The embedded faces of all people, and the photos that failed."""

    names: list[str]  # of people; the position is their number
    files: list[str]  # of faces, as person/file
    embedded: LabelledEmbeddings
    failed: list[Failure]
    digests: dict[str, str] = field(default_factory=dict)  # the SHA-256 of each photo's file, by its name

    @property
    def people(self) -> int:
        """The number of people who have a face."""
        return self.embedded.identities

    @property
    def photos(self) -> int:
        """The number of photos, failed ones included."""
        return len(self.files) + len(self.failed)


def read_labelled(
    folder: Path, embed: Embed, threads: int, progress: Progress = ignore_progress
) -> LabelledFaces:
    """The faces of all photos in `folder/<person>/`; the same photo under two people is an error."""
    people = list_people(folder)
    refuse_duplicates(folder, digest_photos(people))
    pictures = {f"{person}/{path.name}": path for person, photos in people.items() for path in photos}
    found = embed_all(pictures, embed, threads, progress)
    if not found.embeddings:
        raise LabelsRefused(f"No photo in {folder} has a face that can be embedded.")
    numbers = {person: number for number, person in enumerate(people)}
    owners = np.array([numbers[name.split("/")[0]] for name in found.embeddings])
    embedded = LabelledEmbeddings(np.stack(list(found.embeddings.values())), owners)
    return LabelledFaces(list(people), list(found.embeddings), embedded, found.failed, found.digests)


def list_people(folder: Path) -> dict[str, list[Path]]:
    """The photos of each person, by the name of the person's folder."""
    try:
        folders = sorted(path for path in folder.iterdir() if path.is_dir())
    except OSError as error:
        raise LabelsRefused(f"{folder} cannot be read: {error.strerror}.") from error
    people = {
        person.name: sorted(path for path in person.iterdir() if PHOTO_NAMES.fullmatch(path.name))
        for person in folders
    }
    people = {name: photos for name, photos in people.items() if photos}
    if len(people) < 2:
        raise LabelsRefused(f"{folder} must have folders of photos, one per person, of two people or more.")
    return people


def digest_photos(people: Mapping[str, Iterable[Path]]) -> dict[Path, str]:
    """The SHA-256 of every photo."""
    paths = (path for photos in people.values() for path in photos)
    return {path: hashlib.sha256(read_photo(path)).hexdigest() for path in paths}


def refuse_duplicates(folder: Path, digests: Mapping[Path, str]) -> None:
    """Raise if a photo is in the folders of two people: it would be an impostor pair of similarity 1."""
    by_content = defaultdict(list)
    for path, digest in digests.items():
        by_content[digest].append(path)
    found = [same for same in by_content.values() if len({path.parent for path in same}) > 1]
    if found:
        lines = [" = ".join(str(path.relative_to(folder)) for path in same) for same in found]
        rest = f" and {len(lines) - SHOWN} more" if len(lines) > SHOWN else ""
        raise LabelsRefused(
            f"{len(lines)} photos are in the folders of several people: {'; '.join(lines[:SHOWN])}{rest}."
            " They would be counted as false matches: leave each with the person it shows.",
            duplicates=lines,
        )


def find_lookalikes(faces: LabelledFaces) -> list[Lookalikes]:
    """The most similar pairs of different people that reach the median similarity of genuine pairs."""
    threshold = find_typical(faces.embedded)

    def walk() -> Iterator[Lookalikes]:
        embeddings = faces.embedded.embeddings
        for tile in walk_tiles(faces.embedded):
            for row, column in np.argwhere(tile.impostor & (tile.steps >= to_step(threshold))):
                one, other = tile.rows.start + int(row), tile.columns.start + int(column)
                similarity = round(float(embeddings[one] @ embeddings[other]), 6)
                yield Lookalikes(faces.files[one], faces.files[other], similarity)

    return heapq.nlargest(MOST_LOOKALIKES, walk(), key=lambda pair: pair.similarity)


def find_typical(faces: LabelledEmbeddings) -> float:
    """The median similarity of genuine pairs, one pair from each person who has two faces or more."""
    order = np.argsort(faces.people, kind="stable")
    people, embeddings = faces.people[order], faces.embeddings[order]
    _, first, counts = np.unique(people, return_index=True, return_counts=True)
    first = first[counts > 1]
    return float(np.median(np.einsum("ij,ij->i", embeddings[first], embeddings[first + 1])))
