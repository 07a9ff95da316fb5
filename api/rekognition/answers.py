"""What clients of Rekognition read: boxes as shares of the photo, confidences and similarities in percent."""

import uuid
from collections.abc import Sequence
from typing import Any

from sameface.model.decision.confidence import measure_confidence
from sameface.model.decision.thresholds import Threshold
from sameface.model.faces import Box, DetectedFace, Face
from sameface.model.gallery.users import AT_TARGET, RefusedFace, user_of
from sameface.model.photo.pose import estimate_pose
from sameface.model.photo.quality import SHARPNESS_RANGE, ramp
from sameface.model.store.records import KnownFace

LANDMARKS = ("eyeLeft", "eyeRight", "nose", "mouthLeft", "mouthRight")
DIGITS = 5
# The lowest quality that a filter lets through; none is above `ISSUE_BELOW`: there must be a reason to tell.
QUALITY_BARS = {"NONE": 0.0, "AUTO": 0.1, "LOW": 0.1, "MEDIUM": 0.3, "HIGH": 0.5}
REASONS = {
    "too_many": "EXCEEDS_MAX_FACES",
    "small": "SMALL_BOUNDING_BOX",
    "blurred": "LOW_SHARPNESS",
    "dark": "LOW_BRIGHTNESS",
    "overexposed": "LOW_FACE_QUALITY",
    "turned": "EXTREME_POSE",
}
Size = tuple[int, int]


def to_percent(share: float) -> float:
    """A share from 0 to 1 in percent."""
    return round(100 * share, DIGITS)


def describe_similarity(threshold: Threshold, similarity: float) -> float:
    """A similarity as Rekognition's clients read it: 80 at the threshold, 99 where errors are a hundredth."""
    return to_percent(measure_confidence(threshold, similarity, AT_TARGET))


def describe_box(box: Box, size: Size) -> dict[str, float]:
    """A box in shares of a photo of this size."""
    return write_box(box.divide(*size).to_dict())


def write_box(shares: dict[str, float]) -> dict[str, float]:
    """A box in shares by the names of Rekognition."""
    return {name.capitalize(): share for name, share in shares.items()}


def describe_seen(face: DetectedFace, size: Size) -> dict[str, Any]:
    """Where a face is in a photo of this size, and how sure that is."""
    return {"BoundingBox": describe_box(face.box, size), "Confidence": to_percent(face.score)}


def describe_detail(face: Face, size: Size) -> dict[str, Any]:
    """A face as Rekognition's `FaceDetail`, its box and landmarks as shares of the photo's size."""
    pose = estimate_pose(face.landmarks)
    points = zip(LANDMARKS, face.landmarks, strict=True)
    return describe_seen(face, size) | {
        "Landmarks": [{"Type": name, "X": x / size[0], "Y": y / size[1]} for name, (x, y) in points],
        "Pose": {"Roll": pose.roll, "Yaw": pose.yaw, "Pitch": pose.pitch},
        "Quality": {
            "Brightness": to_percent(face.quality.brightness),
            "Sharpness": to_percent(ramp(face.quality.sharpness, SHARPNESS_RANGE)),
        },
    }


def describe_known(face: KnownFace, model: str) -> dict[str, Any]:
    """A face of a collection as Rekognition's `Face`; fields that the store does not have are left out."""
    details = face.details or {}
    known = {
        "FaceId": face.face_id,
        "ImageId": name_image(face.photo) if face.photo else None,
        "ExternalImageId": details.get("external_id"),
        "BoundingBox": write_box(details["box"]) if "box" in details else None,
        "Confidence": to_percent(details["score"]) if "score" in details else None,
        "IndexFacesModelVersion": model,
        "UserId": user_of(face),
    }
    return {name: value for name, value in known.items() if value is not None}


def name_image(photo_sha256: str) -> str:
    """The id of a photo, by its content: the same photo has the same id."""
    return str(uuid.UUID(photo_sha256[:32]))


def name_reasons(issues: Sequence[str]) -> list[str]:
    """Why a face is left out, in Rekognition's words."""
    return [REASONS[issue] for issue in issues]


def describe_refused(refused: Sequence[RefusedFace]) -> list[dict[str, Any]]:
    """Faces that stay as they are, each with the reason."""
    return [
        {
            name: value
            for name, value in {
                "FaceId": face.face_id,
                "UserId": face.user_id,
                "Confidence": None if face.confidence is None else to_percent(face.confidence),
                "Reasons": [face.reason],
            }.items()
            if value is not None
        }
        for face in refused
    ]
