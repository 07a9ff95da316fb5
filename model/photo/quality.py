"""Says how fit a face is for comparison, in measures that a person can act on."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from sameface.model.faces import DetectedFace, Floats, Pixels, Point, Quality

ROUNDING = 2 / 255  # the largest Laplacian that rounding to 8 bits alone can cause
NOSE_DEPTH = 0.55  # how far the nose stands out, in distances between the eyes
# Each measure scores 0 at the first number of its range and 1 at the second.
SIZE_RANGE = (16.0, 80.0)  # pixels of the box's shorter side
SHARPNESS_RANGE = (0.01, 0.04)
DARKNESS_RANGE = (0.05, 0.25)
GLARE_RANGE = (0.98, 0.85)
YAW_RANGE = (75.0, 25.0)  # degrees
ISSUE_BELOW = 0.5


def assess_quality(face: DetectedFace, crop: Pixels) -> Quality:
    """The quality of a face: the lowest score of its measures, and the names of those below `ISSUE_BELOW`."""
    grey = halve(np.asarray(Image.fromarray(crop).convert("L")))
    sharpness, brightness = measure_sharpness(grey), float(grey.mean())
    yaw, size = estimate_yaw(face.landmarks), face.box.shorter_side
    worth = {
        "small": ramp(size, SIZE_RANGE),
        "blurred": ramp(sharpness, SHARPNESS_RANGE),
        "dark": ramp(brightness, DARKNESS_RANGE),
        "overexposed": ramp(brightness, GLARE_RANGE),
        "turned": ramp(abs(yaw), YAW_RANGE),
    }
    return Quality(
        score=round(min(worth.values()), 3),
        sharpness=round(sharpness, 4),
        brightness=round(brightness, 3),
        yaw=round(yaw, 1),
        size=round(size, 1),
        issues=tuple(issue for issue, value in worth.items() if value < ISSUE_BELOW),
    )


def ramp(value: float, between: tuple[float, float]) -> float:
    """0 at the first bound, 1 at the second, linear in between; the first bound may be the larger one."""
    worthless, perfect = between
    return min(1.0, max(0.0, (value - worthless) / (perfect - worthless)))


def halve(grey: NDArray[np.uint8]) -> Floats:
    """The means of 2 x 2 pixels of a grey crop, from 0 to 1."""
    height, width = (side // 2 * 2 for side in grey.shape)
    rows = grey[:height:2].astype(np.uint16) + grey[1:height:2]
    averages: Floats = np.divide(rows[:, :width:2] + rows[:, 1:width:2], 4 * 255, dtype=np.float32)
    return averages


def measure_sharpness(grey: Floats) -> float:
    """The mean absolute Laplacian divided by the contrast: blur lowers it, dim light does not.

    `ROUNDING` is subtracted first: otherwise rounding noise in a heavily blurred crop would pass for detail.
    """
    neighbours = grey[:-2, 1:-1] + grey[2:, 1:-1] + grey[1:-1, :-2] + grey[1:-1, 2:]
    laplacian = np.abs(4 * grey[1:-1, 1:-1] - neighbours) - ROUNDING
    return float(laplacian.clip(min=0).mean() / max(float(grey.std()), 0.02)) / 4


def estimate_yaw(landmarks: Sequence[Point]) -> float:
    """Degrees by which the head is turned, positive towards image-right, from eyes and nose.

    The nose stands out from the plane of the eyes, so a turn moves it along the line between them
    by its depth times the sine, while their distance shrinks by the cosine.
    """
    left_eye, right_eye, nose = (complex(*point) for point in landmarks[:3])
    eyes = right_eye - left_eye
    if eyes == 0:
        return 90.0
    along = ((nose - (left_eye + right_eye) / 2) / eyes).real
    return math.degrees(math.atan(along / NOSE_DEPTH))
