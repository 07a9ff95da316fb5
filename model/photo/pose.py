"""How a head is held, in degrees, estimated from five landmarks."""

import cmath
import math
from collections.abc import Sequence
from dataclasses import dataclass

from sameface.model.faces import Point, Value
from sameface.model.photo.quality import NOSE_DEPTH, estimate_yaw

NOSE_HEIGHT = 0.494  # of a head held straight: how far down the nose is, from the eyes to the mouth
FACE_HEIGHT = 1.156  # from the eyes to the mouth, in distances between the eyes


@dataclass(frozen=True, slots=True)
class Pose(Value):
    """The angles of a head, in degrees; all are 0 if it looks straight into the camera."""

    pitch: float  # positive: lowered
    roll: float  # positive: tilted clockwise, as the image shows it
    yaw: float  # positive: turned towards image-right


def estimate_pose(landmarks: Sequence[Point]) -> Pose:
    """The pose of a face: roll from the line of the eyes, yaw and pitch from where the nose stands out."""
    left_eye, right_eye, nose, left_mouth, right_mouth = (complex(*point) for point in landmarks)
    eyes = right_eye - left_eye
    middle = (left_eye + right_eye) / 2
    down = (left_mouth + right_mouth) / 2 - middle
    if eyes == 0 or down == 0:
        return Pose(0.0, 0.0, 90.0)
    along = ((nose - middle) / down).real
    pitch = math.atan((along - NOSE_HEIGHT) * FACE_HEIGHT / NOSE_DEPTH)
    return Pose(
        round(math.degrees(pitch), 1),
        round(math.degrees(cmath.phase(eyes)), 1),
        round(estimate_yaw(landmarks), 1),
    )
