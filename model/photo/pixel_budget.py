"""Bounds the memory of the decoded photos of all threads: a photo waits until there is room."""

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from PIL import Image

from sameface.model.faces import Photo
from sameface.model.photo.formats.jpeg import read_size
from sameface.model.photo.image import ImageLimits, open_photo
from sameface.model.runtime.memory import return_freed_memory
from sameface.model.runtime.work_queue import stop_if_unwanted

LARGE_PHOTO = 10_000_000  # pixels, from which the allocator is asked to return what it keeps
LOOK_SECONDS = 1.0  # after which a photo that waits looks whether it is still wanted


class PixelBudget:
    """The decoded pixels of all threads: a photo waits for room; one above the limit is taken alone."""

    def __init__(self, limits: ImageLimits) -> None:
        self.limits = limits
        self.taken = 0
        self._changed = threading.Condition()

    @contextmanager
    def holding(self, photo: Photo) -> Iterator[None]:
        """Hold room for the pixels of `photo` during the block."""
        pixels = count_pixels(photo, self.limits)
        with self._changed:
            while self.taken and self.taken + pixels > self.limits.max_decoded_pixels:
                self._changed.wait(LOOK_SECONDS)
                stop_if_unwanted()
            self.taken += pixels
        try:
            yield
        finally:
            with self._changed:
                self.taken -= pixels
                self._changed.notify_all()
            if pixels > LARGE_PHOTO:
                return_freed_memory()


def count_pixels(photo: Photo, limits: ImageLimits) -> int:
    """The pixels of a photo by its header, at most as many as are decoded; 0 if it cannot be read."""
    try:
        return min(math.prod(measure(photo, limits)), limits.max_pixels)
    except Exception:  # a decoder fed with hostile bytes may raise anything
        return 0


def measure(photo: Photo, limits: ImageLimits) -> tuple[int, int]:
    """The sides of a photo by its header."""
    if isinstance(photo, Image.Image):
        return photo.size
    if size := read_size(photo):
        return size
    with open_photo(photo, limits) as image:
        return image.size
