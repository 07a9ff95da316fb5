"""Labelled crops to learn from: identity folders, tar shards of the same, or InsightFace's RecordIO."""

import io
import logging
import os
import re
import tarfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from model.faces import Keys, Pixels
from training.crop import CROP_SIDE
from training.errors import DatasetRefused
from training.recordio import RecordFile

log = logging.getLogger("sameface.training")

IMAGE_NAMES = re.compile(r".*\.(jpe?g|png|webp|bmp)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Source:
    """One image: whose it is, and how to get its bytes."""

    identity: str
    read: Callable[[], bytes]


class FaceSet:
    """Crops with labels from 0, one per identity that has enough images."""

    def __init__(self, sources: Sequence[Source], min_images: int = 1) -> None:
        images = Counter(source.identity for source in sources)
        self.identities = sorted(identity for identity, count in images.items() if count >= min_images)
        self.left_out = len(images) - len(self.identities)  # identities with too few images
        if not self.identities:
            raise DatasetRefused(f"Nobody has {min_images} images or more.")
        place = {identity: label for label, identity in enumerate(self.identities)}
        self.sources = [source for source in sources if source.identity in place]
        self.labels: Keys = np.array([place[source.identity] for source in self.sources])
        self.unreadable: set[int] = set()

    def __len__(self) -> int:
        """Images."""
        return len(self.sources)

    def read(self, index: int) -> tuple[Pixels, int]:
        """A crop (112, 112, 3) and its label; in the place of one that cannot be read comes the next."""
        for step in range(len(self)):
            place = (index + step) % len(self)
            try:
                return decode_crop(self.sources[place].read()), int(self.labels[place])
            except (OSError, ValueError, Image.DecompressionBombError) as error:
                if place not in self.unreadable:
                    log.warning("image %d of %s is left out: %s", place, self.sources[place].identity, error)
                self.unreadable.add(place)
        raise DatasetRefused("No image can be read.")


def decode_crop(content: bytes) -> Pixels:
    """An image as RGB, at the size that networks are trained on."""
    with Image.open(io.BytesIO(content)) as image:
        rgb = image.convert("RGB")
    if rgb.size != (CROP_SIDE, CROP_SIDE):
        rgb = rgb.resize((CROP_SIDE, CROP_SIDE), Image.Resampling.BICUBIC)
    return np.asarray(rgb)


def open_faces(path: Path, min_images: int = 1) -> FaceSet:
    """The crops at a path, whatever form they have."""
    path = path.expanduser()
    if path.suffix == ".rec":
        return FaceSet(list_records(path), min_images)
    if path.suffix == ".tar":
        return FaceSet(list_shard(path), min_images)
    if not path.is_dir():
        raise DatasetRefused(f"{path} is no folder, .tar or .rec.")
    shards = sorted(path.glob("*.tar"))
    sources = [source for shard in shards for source in list_shard(shard)] or list_folder(path)
    if not sources:
        raise DatasetRefused(f"{path} has neither folders of images nor tar shards in it.")
    return FaceSet(sources, min_images)


def list_folder(path: Path) -> list[Source]:
    """A folder per identity."""
    return [
        Source(folder.name, image.read_bytes)
        for folder in sorted(path.iterdir())
        if folder.is_dir()
        for image in sorted(folder.iterdir())
        if IMAGE_NAMES.fullmatch(image.name)
    ]


def list_shard(path: Path) -> list[Source]:
    """Images of a tar, each in the folder of its identity; read where they lie, without unpacking."""
    with tarfile.open(path) as shard:
        members = [member for member in shard if member.isfile() and IMAGE_NAMES.fullmatch(member.name)]
    file = os.open(path, os.O_RDONLY)

    def reader(size: int, offset: int) -> Callable[[], bytes]:
        return lambda: os.pread(file, size, offset)

    return [
        Source(Path(member.name).parent.name, reader(member.size, member.offset_data))
        for member in sorted(members, key=lambda member: member.name)
    ]


def list_records(path: Path) -> list[Source]:
    """Images of a RecordIO file; the label is the identity."""
    records = RecordFile(path)

    def reader(offset: int) -> Callable[[], bytes]:
        return lambda: records.read(offset).image

    return [Source(f"{label:08d}", reader(offset)) for offset, label in records.list_images()]
