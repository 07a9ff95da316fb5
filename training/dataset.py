"""Labelled crops to learn from: identity folders, tar shards of the same, or InsightFace's RecordIO."""

import hashlib
import io
import logging
import os
import tarfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from model.faces import Keys, Pixels
from model.image import PHOTO_NAMES
from training.crop import CROP_SIDE
from training.errors import DatasetRefused
from training.recordio import RecordFile

log = logging.getLogger("sameface.training")


@dataclass(frozen=True, slots=True)
class Source:
    """One image: whose it is, what it is called, and how to get its bytes."""

    identity: str
    name: str
    read: Callable[[], bytes]


class FaceSet:
    """Crops with labels from 0, one per identity that has enough images; decoded once while memory lasts."""

    def __init__(self, sources: Sequence[Source], min_images: int = 1, memory: int = 0) -> None:
        images = Counter(source.identity for source in sources)
        self.identities = sorted(identity for identity, count in images.items() if count >= min_images)
        self.left_out = len(images) - len(self.identities)  # identities with too few images
        if not self.identities:
            raise DatasetRefused(f"Nobody has {min_images} images or more.")
        place = {identity: label for label, identity in enumerate(self.identities)}
        self.sources = [source for source in sources if source.identity in place]
        self.labels: Keys = np.array([place[source.identity] for source in self.sources])
        self.unreadable: set[int] = set()
        self._kept: dict[int, Pixels] = {}
        self._room = memory // (CROP_SIDE * CROP_SIDE * 3)  # crops

    def __len__(self) -> int:
        """Images."""
        return len(self.sources)

    def read(self, index: int) -> tuple[Pixels, int]:
        """A crop (112, 112, 3) and its label; in the place of one that cannot be read comes the next."""
        for step in range(len(self)):
            place = (index + step) % len(self)
            try:
                return self.decode(place), int(self.labels[place])
            except (OSError, ValueError, Image.DecompressionBombError) as error:
                if place not in self.unreadable:
                    log.warning("image %d of %s is left out: %s", place, self.sources[place].identity, error)
                self.unreadable.add(place)
        raise DatasetRefused("No image can be read.")

    def decode(self, place: int) -> Pixels:
        """A crop, from memory if it was decoded before."""
        kept = self._kept.get(place)
        if kept is not None:
            return kept
        crop = decode_crop(self.sources[place].read())
        if len(self._kept) < self._room:
            self._kept[place] = crop
        return crop

    def describe(self) -> dict[str, int]:
        """What a checkpoint and a model card say about it."""
        return {
            "identities": len(self.identities),
            "images": len(self),
            "left_out": self.left_out,
            "unreadable": len(self.unreadable),
        }

    def fingerprint(self) -> str:
        """The hash of which images these are, in which order."""
        lines = (f"{source.identity}/{source.name}\n" for source in self.sources)
        return hashlib.sha256("".join(lines).encode()).hexdigest()


def decode_crop(content: bytes) -> Pixels:
    """An image as RGB, at the size that networks are trained on."""
    with Image.open(io.BytesIO(content)) as image:
        rgb = image.convert("RGB")
    if rgb.size != (CROP_SIDE, CROP_SIDE):
        rgb = rgb.resize((CROP_SIDE, CROP_SIDE), Image.Resampling.BICUBIC)
    return np.asarray(rgb)


def open_faces(path: Path, min_images: int = 1, memory: int = 0) -> FaceSet:
    """The crops at a path, whatever form they have; so many bytes of decoded ones are kept."""
    return FaceSet(list_sources(path.expanduser()), min_images, memory)


def list_sources(path: Path) -> list[Source]:
    """The images at a path."""
    if path.suffix == ".rec":
        return list_records(path)
    if path.suffix == ".tar":
        return list_shard(path)
    if not path.is_dir():
        raise DatasetRefused(f"{path} is no folder, .tar or .rec.")
    shards = sorted(path.glob("*.tar"))
    sources = [source for shard in shards for source in list_shard(shard)] or list_folder(path)
    if not sources:
        raise DatasetRefused(f"{path} has neither folders of images nor tar shards in it.")
    return sources


def list_folder(path: Path) -> list[Source]:
    """A folder per identity."""
    return [
        Source(folder.name, image.name, image.read_bytes)
        for folder in sorted(path.iterdir())
        if folder.is_dir()
        for image in sorted(folder.iterdir())
        if PHOTO_NAMES.fullmatch(image.name)
    ]


def list_shard(path: Path) -> list[Source]:
    """Images of a tar, each in the folder of its identity; read where they lie, without unpacking."""
    with tarfile.open(path) as shard:
        members = [member for member in shard if member.isfile() and PHOTO_NAMES.fullmatch(member.name)]
    file = os.open(path, os.O_RDONLY)

    def reader(size: int, offset: int) -> Callable[[], bytes]:
        return lambda: os.pread(file, size, offset)

    return [
        Source(
            Path(member.name).parent.name,
            Path(member.name).name,
            reader(member.size, member.offset_data),
        )
        for member in sorted(members, key=lambda member: member.name)
    ]


def list_records(path: Path) -> list[Source]:
    """Images of a RecordIO file; the label is the identity."""
    records = RecordFile(path)

    def reader(offset: int) -> Callable[[], bytes]:
        return lambda: records.read(offset).image

    return [Source(f"{label:08d}", str(offset), reader(offset)) for offset, label in records.list_images()]
