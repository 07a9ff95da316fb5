"""Every failure of a call, an exception per code of docs/errors.md."""

from typing import Any

from sameface_client.errors.failure import SamefaceError
from sameface_client.errors.of_requests import (
    AlreadyExists,
    BodyTooLarge,
    CalibrationNotFound,
    CollectionNotFound,
    EntryNotFound,
    FaceNotFound,
    FaceTooSmall,
    FmrNotSupported,
    Forbidden,
    FpirNotSupported,
    HostNotAllowed,
    IdempotencyKeyReused,
    ImageTooLarge,
    InvalidRequest,
    KeyNotFound,
    LowQualityFace,
    MethodNotAllowed,
    ModelMismatch,
    NoFaceFound,
    NotCalibrated,
    NotFound,
    NotServedHere,
    PersonNotFound,
    SeveralFacesFound,
    TooManyImages,
    Unauthorized,
    UnreadableImage,
    UnsupportedImage,
    UnsupportedMediaType,
)
from sameface_client.errors.of_servers import (
    ConnectionFailed,
    IndexRefused,
    IndexUnavailable,
    Internal,
    NotReady,
    Overloaded,
    RateLimited,
    StorageFull,
    StoreDamaged,
    StoreRefused,
    StoreUnavailable,
    TimedOut,
    UnexpectedAnswer,
)

__all__ = [
    "AlreadyExists",
    "BodyTooLarge",
    "CalibrationNotFound",
    "CollectionNotFound",
    "ConnectionFailed",
    "EntryNotFound",
    "FaceNotFound",
    "FaceTooSmall",
    "FmrNotSupported",
    "Forbidden",
    "FpirNotSupported",
    "HostNotAllowed",
    "IdempotencyKeyReused",
    "ImageTooLarge",
    "IndexRefused",
    "IndexUnavailable",
    "Internal",
    "InvalidRequest",
    "KeyNotFound",
    "LowQualityFace",
    "MethodNotAllowed",
    "ModelMismatch",
    "NoFaceFound",
    "NotCalibrated",
    "NotFound",
    "NotReady",
    "NotServedHere",
    "Overloaded",
    "PersonNotFound",
    "RateLimited",
    "SamefaceError",
    "SeveralFacesFound",
    "StorageFull",
    "StoreDamaged",
    "StoreRefused",
    "StoreUnavailable",
    "TimedOut",
    "TooManyImages",
    "Unauthorized",
    "UnexpectedAnswer",
    "UnreadableImage",
    "UnsupportedImage",
    "UnsupportedMediaType",
]

BY_CODE = {kind.code: kind for kind in SamefaceError.__subclasses__()}
ENVELOPE = {"type", "title", "status", "code", "detail", "request_id"}  # of a problem; the rest are facts


def to_error(problem: dict[str, Any]) -> SamefaceError:
    """The exception of a problem+json; a code that a newer server has invented is a plain SamefaceError."""
    code = str(problem["code"])
    error = BY_CODE.get(code, SamefaceError)(
        str(problem.get("detail", code)),
        status=problem.get("status"),
        request_id=problem.get("request_id"),
        **{name: value for name, value in problem.items() if name not in ENVELOPE},
    )
    error.code = code
    return error
