"""Finds faces and their five landmarks with YuNet, at a size that fits the photo."""

from dataclasses import dataclass

import numpy as np
from PIL import Image

from sameface.model.bundles.bundle import DETECTOR_PARTS, DETECTOR_STRIDES, Bundle
from sameface.model.faces import Box, DetectedFace, Floats, Pixels
from sameface.model.runtime.session_pool import SessionPool

MULTIPLE = max(DETECTOR_STRIDES)  # the input's sides are multiples of it, so that every stride divides them
OUTPUTS = [f"{part}_{stride}" for part in DETECTOR_PARTS for stride in DETECTOR_STRIDES]
MAX_OVERLAP = 0.3  # intersection over union beyond which the box of the lower score is dropped
MAX_LOG_SIZE = 6.0  # e^6 strides: larger than any input, and finite
LIKELY = 0.999  # of the square of the lowest score: what may reach it, whichever way it is rounded
NO_ROWS = np.empty((0, 15), np.float32)
RETRY_SCALE = 0.4  # of a second try: a face that fills the photo is too large for the detector


@dataclass(frozen=True, slots=True)
class DetectorOptions:
    """The side that larger photos are scaled down to, and the score that a face must reach."""

    max_side: int = 640
    min_score: float = 0.7


class Detector:
    """Finds the faces of an upright RGB image."""

    def __init__(self, bundle: Bundle, sessions: SessionPool, options: DetectorOptions) -> None:
        self.bundle = bundle
        self.sessions = sessions
        self.options = options

    def detect(self, image: Pixels) -> list[DetectedFace]:
        """Every face in the image, highest score first; if none is found, a smaller scale is tried."""
        scale = min(1.0, self.options.max_side / max(image.shape[:2]))
        return self.detect_at(image, scale) or self.detect_at(image, scale * RETRY_SCALE)

    def detect_at(self, image: Pixels, scale: float) -> list[DetectedFace]:
        """The faces that are found in the image at `scale`, in pixels of the full image."""
        height, width, _ = image.shape
        small = resize(image, scale)
        canvas = [-(-side // MULTIPLE) * MULTIPLE for side in small.shape[:2]]
        pixels = self.bundle.preprocess(small[np.newaxis], canvas)  # (1, 3, height, width)
        outputs = dict(zip(OUTPUTS, self.sessions.run(pixels, OUTPUTS), strict=True))
        min_score = self.options.min_score
        found = [decode_stride(outputs, stride, canvas[1], min_score) for stride in DETECTOR_STRIDES]
        kept = suppress_overlaps(np.concatenate(found))
        kept[:, :14] *= max(width, height) / max(small.shape[:2])
        return to_faces(kept, (width, height))


def resize(image: Pixels, scale: float) -> Pixels:
    """The image at `scale`, at least a pixel wide and high."""
    height, width = (max(1, round(side * scale)) for side in image.shape[:2])
    if (height, width) == image.shape[:2]:
        return image
    return np.asarray(Image.fromarray(image).resize((width, height), Image.Resampling.BILINEAR))


def decode_stride(outputs: dict[str, Floats], stride: int, width: int, min_score: float) -> Floats:
    """The cells that reach `min_score`, as rows of left, top, width, height, ten landmark numbers, score."""
    classes, objects = (outputs[f"{part}_{stride}"][0, :, 0] for part in ("cls", "obj"))
    (cells,) = (classes * objects >= LIKELY * min_score**2).nonzero()  # of thousands of cells, a few
    if len(cells):
        score = np.sqrt(classes[cells].clip(0, 1) * objects[cells].clip(0, 1))
        cells, score = cells[score >= min_score], score[score >= min_score]
    if not len(cells):
        return NO_ROWS
    row, column = np.divmod(cells, width // stride)
    corner = np.stack([column, row], axis=1)  # (found, 2)
    box = outputs[f"bbox_{stride}"][0, cells]
    size = np.exp(box[:, 2:].clip(max=MAX_LOG_SIZE)) * stride
    centre = (corner + box[:, :2]) * stride
    landmarks = (outputs[f"kps_{stride}"][0, cells].reshape(-1, 5, 2) + corner[:, np.newaxis]) * stride
    rows = [centre - size / 2, size, landmarks.reshape(-1, 10), score[:, np.newaxis]]
    return np.concatenate(rows, axis=1).astype(np.float32)


def suppress_overlaps(found: Floats) -> Floats:
    """Non-maximum suppression: of overlapping rows only the one of the highest score, highest first."""
    found = found[(-found[:, 14]).argsort(kind="stable")]
    low, area = found[:, :2], found[:, 2] * found[:, 3]
    high = low + found[:, 2:4]
    left, kept = np.arange(len(found)), []
    while len(left):
        best, left = left[0], left[1:]
        kept.append(best)
        sides = np.minimum(high[best], high[left]) - np.maximum(low[best], low[left])
        shared = np.where((sides > 0).all(axis=1), sides[:, 0] * sides[:, 1], 0)
        left = left[shared <= MAX_OVERLAP * np.maximum(area[best] + area[left] - shared, 1e-9)]
    return found[kept]


def to_faces(rows: Floats, image_size: tuple[int, int]) -> list[DetectedFace]:
    """Rows as faces; a row whose landmarks are all one point is left out, because it cannot be aligned."""
    faces = [to_face(row, image_size) for row in rows]
    return [face for face in faces if len(set(face.landmarks)) > 1]


def to_face(row: Floats, image_size: tuple[int, int]) -> DetectedFace:
    """A row as a face, its box clipped to the image."""
    x, y, width, height, *points, score = row.tolist()  # a few numbers: Python is faster than numpy
    left, right = (min(max(side, 0.0), image_size[0]) for side in (x, x + width))
    top, bottom = (min(max(side, 0.0), image_size[1]) for side in (y, y + height))
    box = Box(*(round(number, 2) for number in (left, top, right - left, bottom - top)))
    landmarks = tuple((round(x, 2), round(y, 2)) for x, y in zip(points[::2], points[1::2], strict=True))
    return DetectedFace(box, landmarks, round(score, 4))
