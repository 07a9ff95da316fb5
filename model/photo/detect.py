"""Finds faces and their five landmarks with YuNet, at a size that fits the photo."""

from dataclasses import dataclass

import numpy as np
from PIL import Image

from sameface.model.bundles.bundle import DETECTOR_PARTS, DETECTOR_STRIDES, Bundle
from sameface.model.faces import Box, DetectedFace, Floats
from sameface.model.runtime.session_pool import SessionPool

MULTIPLE = max(DETECTOR_STRIDES)  # the input's sides are multiples of it, so that every stride divides them
OUTPUTS = [f"{part}_{stride}" for part in DETECTOR_PARTS for stride in DETECTOR_STRIDES]
MAX_OVERLAP = 0.3  # intersection over union beyond which the box of the lower score is dropped
MAX_LOG_SIZE = 6.0  # e^6 strides: larger than any input, and finite
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

    def detect(self, image: Image.Image) -> list[DetectedFace]:
        """Every face in the image, highest score first; if none is found, a smaller scale is tried."""
        scale = min(1.0, self.options.max_side / max(image.size))
        return self.detect_at(image, scale) or self.detect_at(image, scale * RETRY_SCALE)

    def detect_at(self, image: Image.Image, scale: float) -> list[DetectedFace]:
        """The faces that are found in the image at `scale`, in pixels of the full image."""
        canvas = draw_on_canvas(image, scale)
        pixels = self.bundle.preprocess(canvas[np.newaxis])  # (1, 3, height, width)
        outputs = dict(zip(OUTPUTS, self.sessions.run(pixels, OUTPUTS), strict=True))
        width, min_score = canvas.shape[1], self.options.min_score
        found = np.concatenate(
            [decode_stride(outputs, stride, width, min_score) for stride in DETECTOR_STRIDES]
        )
        found[:, :14] *= max(image.size) / max(1, round(max(image.size) * scale))
        return to_faces(suppress_overlaps(found), image.size)


def draw_on_canvas(image: Image.Image, scale: float) -> np.ndarray:
    """The scaled image in the top left corner of a black canvas whose sides are multiples of `MULTIPLE`."""
    width, height = (max(1, round(side * scale)) for side in image.size)
    small = (
        image if (width, height) == image.size else image.resize((width, height), Image.Resampling.BILINEAR)
    )
    canvas = np.zeros((-(-height // MULTIPLE) * MULTIPLE, -(-width // MULTIPLE) * MULTIPLE, 3), np.uint8)
    canvas[:height, :width] = np.asarray(small)
    return canvas


def decode_stride(outputs: dict[str, Floats], stride: int, width: int, min_score: float) -> Floats:
    """The cells that reach `min_score`, as rows of left, top, width, height, ten landmark numbers, score."""
    score = np.sqrt(
        outputs[f"cls_{stride}"][0, :, 0].clip(0, 1) * outputs[f"obj_{stride}"][0, :, 0].clip(0, 1)
    )
    cells = np.flatnonzero(score >= min_score)
    if not len(cells):
        return np.empty((0, 15), np.float32)
    corner = np.stack(
        [cells % (width // stride), cells // (width // stride)], axis=1
    )  # (found, 2) column, row
    box = outputs[f"bbox_{stride}"][0, cells]
    size = np.exp(box[:, 2:].clip(max=MAX_LOG_SIZE)) * stride
    centre = (corner + box[:, :2]) * stride
    landmarks = (outputs[f"kps_{stride}"][0, cells].reshape(-1, 5, 2) + corner[:, np.newaxis]) * stride
    rows = [centre - size / 2, size, landmarks.reshape(-1, 10), score[cells, np.newaxis]]
    return np.concatenate(rows, axis=1).astype(np.float32)


def suppress_overlaps(found: Floats) -> Floats:
    """Non-maximum suppression: of overlapping rows only the one of the highest score, highest first."""
    found = found[np.argsort(-found[:, 14], kind="stable")]
    kept = []
    while len(found):
        best, found = found[0], found[1:]
        kept.append(best)
        found = found[overlap(best, found) <= MAX_OVERLAP]
    return np.array(kept, np.float32).reshape(-1, 15)


def overlap(row: Floats, others: Floats) -> Floats:
    """The intersection over union of the box of `row` with the box of each row of `others`."""
    low = np.maximum(row[:2], others[:, :2])
    high = np.minimum(row[:2] + row[2:4], others[:, :2] + others[:, 2:4])
    intersection = (high - low).clip(min=0).prod(axis=1)
    union = row[2:4].prod() + others[:, 2:4].prod(axis=1) - intersection
    return np.asarray(intersection / np.maximum(union, 1e-9), np.float32)


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
