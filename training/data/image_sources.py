"""Lists the images of a data set: identity folders, tar shards of such folders, or InsightFace's RecordIO.

A few arrays hold them, not an object per image: a set of a million identities has millions of images.
"""

import os
import tarfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sameface.model.faces import Keys
from sameface.model.photo.image import PHOTO_NAMES
from sameface.training.data.recordio import RecordFile
from sameface.training.errors import DatasetRefused


@dataclass(frozen=True, slots=True)
class Images:
    """The images of a data set by number: identity, name and bytes of each."""

    identities: Sequence[str]  # sorted
    owners: Keys  # (images,), indices into `identities`
    name: Callable[[int], str]
    read: Callable[[int], bytes]


def list_images(path: Path) -> Images:
    """List the images at `path`: a .rec, a .tar, a folder of .tar or a folder of identity folders."""
    if path.suffix == ".rec":
        return list_records(path)
    if path.suffix == ".tar":
        return list_shards([path])
    if not path.is_dir():
        raise DatasetRefused(f"{path} is no folder, .tar or .rec.")
    shards = sorted(path.glob("*.tar"))
    return list_shards(shards) if shards else list_folder(path)


def list_folder(path: Path) -> Images:
    """List the images of a folder that has a folder per identity."""
    files = [
        str(image)
        for folder in sorted(path.iterdir())
        if folder.is_dir()
        for image in sorted(folder.iterdir())
        if PHOTO_NAMES.fullmatch(image.name)
    ]
    if not files:
        raise DatasetRefused(f"{path} has neither folders of images nor tar shards in it.")
    identities, owners = number(Path(file).parent.name for file in files)
    return Images(
        identities,
        owners,
        lambda place: Path(files[place]).name,
        lambda place: Path(files[place]).read_bytes(),
    )


def list_shards(paths: Sequence[Path]) -> Images:
    """List the images of tars, each in the folder of its identity; they are read without unpacking."""
    names: list[str] = []
    places: list[tuple[int, int, int]] = []
    for path in paths:
        try:
            with tarfile.open(path) as shard:
                members = [
                    member for member in shard if member.isfile() and PHOTO_NAMES.fullmatch(member.name)
                ]
        except (OSError, tarfile.TarError) as error:
            raise DatasetRefused(f"{path} is no tar that can be read: {error}.") from error
        file = os.open(path, os.O_RDONLY)
        names += [member.name for member in members]
        places += [(file, member.size, member.offset_data) for member in members]
    if not names:
        raise DatasetRefused(f"{paths[0]} has no folders of images in it.")
    order = sorted(range(len(names)), key=names.__getitem__)
    names = [names[place] for place in order]
    extents = np.array([places[place] for place in order])  # (images, 3): file, size, offset
    identities, owners = number(Path(name).parent.name for name in names)

    def read(place: int) -> bytes:
        file, size, offset = extents[place].tolist()
        return os.pread(file, size, offset)

    return Images(identities, owners, lambda place: Path(names[place]).name, read)


def list_records(path: Path) -> Images:
    """List the images of a RecordIO file, whose labels are the identities."""
    records = RecordFile(path)
    listed = np.array(list(records.list_images()), np.int64).reshape(-1, 2)
    if not len(listed):
        raise DatasetRefused(f"{path} has no images in it.")
    offsets = listed[:, 0]
    labels, owners = np.unique(listed[:, 1], return_inverse=True)
    identities = [f"{label:08d}" for label in labels]
    return Images(
        identities,
        owners,
        lambda place: str(offsets[place]),
        lambda place: records.read(int(offsets[place])).image,
    )


def number(owners: Iterable[str]) -> tuple[list[str], Keys]:
    """The distinct names, sorted, and the index of each owner among them."""
    names, places = np.unique(list(owners), return_inverse=True)
    return names.tolist(), places
