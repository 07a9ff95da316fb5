"""Labelled crops to learn from."""

import hashlib
import io
import logging
from pathlib import Path

import numpy as np
from PIL import Image

from sameface.model.faces import Keys, Pixels
from sameface.training.data.blend import blend
from sameface.training.data.crop import CROP_SIDE
from sameface.training.data.image_sources import Images, list_images
from sameface.training.errors import DatasetRefused

log = logging.getLogger("sameface.training")

NOBODY = -1  # the label of a blend


class FaceSet:
    """Crops with labels from 0, one per identity that has enough images; decoded once while memory lasts.

    After them come so many blends of each with another, labelled as nobody's.
    """

    def __init__(self, images: Images, min_images: int = 1, memory: int = 0, blends: int = 0) -> None:
        counts = np.bincount(images.owners, minlength=len(images.identities))
        enough = counts >= min_images  # (identities,)
        if not enough.any():
            raise DatasetRefused(f"Nobody has {min_images} images or more.")
        self.images, self.blends = images, blends
        self.identities = [name for name, kept in zip(images.identities, enough, strict=True) if kept]
        self.left_out = int((~enough).sum())  # identities with too few images
        self.places: Keys = np.flatnonzero(enough[images.owners])  # of what is kept, among all images
        self.labels: Keys = (np.cumsum(enough) - 1)[images.owners[self.places]]
        self.unreadable: set[int] = set()
        self._kept: dict[int, Pixels] = {}
        self._room = memory // (CROP_SIDE * CROP_SIDE * 3)  # crops

    def __len__(self) -> int:
        """Images, and blends of them."""
        return len(self.places) * (1 + self.blends)

    def read(self, index: int) -> tuple[Pixels, int]:
        """A crop (112, 112, 3) and its label, or a blend."""
        if index < len(self.places):
            return self.read_image(index)
        random = np.random.default_rng(index)  # so that what a teacher said of a blend is true of it again
        first, _ = self.read_image(index % len(self.places))
        second, _ = self.read_image(int(random.integers(len(self.places))))
        return blend(first, second, random), NOBODY

    def read_image(self, index: int) -> tuple[Pixels, int]:
        """A crop and its label; in the place of one that cannot be read comes the next."""
        for step in range(len(self.places)):
            place = (index + step) % len(self.places)
            label = int(self.labels[place])
            try:
                return self.decode(place), label
            except (OSError, ValueError, Image.DecompressionBombError) as error:
                if place not in self.unreadable:
                    log.warning("an image of %s is left out: %s", self.identities[label], error)
                self.unreadable.add(place)
        raise DatasetRefused("No image can be read.")

    def decode(self, place: int) -> Pixels:
        """A crop, from memory if it was decoded before."""
        kept = self._kept.get(place)
        if kept is not None:
            return kept
        crop = decode_crop(self.images.read(int(self.places[place])))
        if len(self._kept) < self._room:
            self._kept[place] = crop
        return crop

    def describe(self) -> dict[str, int]:
        """What a checkpoint and a model card say about it."""
        return {
            "identities": len(self.identities),
            "images": len(self.places),
            "blends": len(self) - len(self.places),
            "left_out": self.left_out,
            "unreadable": len(self.unreadable),
        }

    def fingerprint(self) -> str:
        """The hash of which images these are, in which order, and of how many blends follow."""
        digest = hashlib.sha256(f"{self.blends} blends\n".encode() if self.blends else b"")
        for place, label in zip(self.places.tolist(), self.labels.tolist(), strict=True):
            digest.update(f"{self.identities[label]}/{self.images.name(place)}\n".encode())
        return digest.hexdigest()


def decode_crop(content: bytes) -> Pixels:
    """An image as RGB, at the size that networks are trained on."""
    with Image.open(io.BytesIO(content)) as image:
        rgb = image.convert("RGB")
    if rgb.size != (CROP_SIDE, CROP_SIDE):
        rgb = rgb.resize((CROP_SIDE, CROP_SIDE), Image.Resampling.BICUBIC)
    return np.asarray(rgb)


def open_faces(path: Path, min_images: int = 1, memory: int = 0, blends: int = 0) -> FaceSet:
    """The crops at a path, whatever form they have; so many bytes of decoded ones are kept."""
    return FaceSet(list_images(path.expanduser()), min_images, memory, blends)
