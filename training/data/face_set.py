"""A face set: labelled crops and blends of them, by index."""

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
    """Crops with labels from 0, one label per identity with at least `min_images` images.

    Decoded crops are kept up to `memory` bytes. After the images come `blends` blends of each image with
    another, labelled NOBODY.
    """

    def __init__(self, images: Images, min_images: int = 1, memory: int = 0, blends: int = 0) -> None:
        counts = np.bincount(images.owners, minlength=len(images.identities))
        enough = counts >= min_images  # (identities,)
        if not enough.any():
            raise DatasetRefused(f"Nobody has {min_images} images or more.")
        self.images, self.blends = images, blends
        self.identities = [name for name, kept in zip(images.identities, enough, strict=True) if kept]
        self.left_out = int((~enough).sum())  # identities with too few images
        self.places: Keys = np.flatnonzero(enough[images.owners])  # (kept,), indices into `images`
        self.labels: Keys = (np.cumsum(enough) - 1)[images.owners[self.places]]
        self.unreadable: set[int] = set()
        self._kept: dict[int, Pixels] = {}
        self._room = memory // (CROP_SIDE * CROP_SIDE * 3)  # crops that fit in `memory`

    def __len__(self) -> int:
        """The number of images and blends."""
        return len(self.places) * (1 + self.blends)

    def read(self, index: int) -> tuple[Pixels, int]:
        """The crop (112, 112, 3) and the label at `index`; indices after the images are blends."""
        if index < len(self.places):
            return self.read_image(index)
        random = np.random.default_rng(index)  # the same blend each time: its teacher's embedding is cached
        first, _ = self.read_image(index % len(self.places))
        second, _ = self.read_image(int(random.integers(len(self.places))))
        return blend(first, second, random), NOBODY

    def read_image(self, index: int) -> tuple[Pixels, int]:
        """The crop and label at `index`, or those of the next image that can be read."""
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
        """Decode the crop at `place`, or take it from memory."""
        kept = self._kept.get(place)
        if kept is not None:
            return kept
        crop = decode_crop(self.images.read(int(self.places[place])))
        if len(self._kept) < self._room:
            self._kept[place] = crop
        return crop

    def describe(self) -> dict[str, int]:
        """Counts for checkpoints and model cards."""
        return {
            "identities": len(self.identities),
            "images": len(self.places),
            "blends": len(self) - len(self.places),
            "left_out": self.left_out,
            "unreadable": len(self.unreadable),
        }

    def fingerprint(self) -> str:
        """The SHA-256 of the images' names in their order, and of the number of blends."""
        digest = hashlib.sha256(f"{self.blends} blends\n".encode() if self.blends else b"")
        for place, label in zip(self.places.tolist(), self.labels.tolist(), strict=True):
            digest.update(f"{self.identities[label]}/{self.images.name(place)}\n".encode())
        return digest.hexdigest()


def decode_crop(content: bytes) -> Pixels:
    """Decode an image to RGB, and resize it to 112x112 if needed."""
    with Image.open(io.BytesIO(content)) as image:
        rgb = image.convert("RGB")
    if rgb.size != (CROP_SIDE, CROP_SIDE):
        rgb = rgb.resize((CROP_SIDE, CROP_SIDE), Image.Resampling.BICUBIC)
    return np.asarray(rgb)


def open_faces(path: Path, min_images: int = 1, memory: int = 0, blends: int = 0) -> FaceSet:
    """The face set at `path`, in any form that `list_images` knows."""
    return FaceSet(list_images(path.expanduser()), min_images, memory, blends)
