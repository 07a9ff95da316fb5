"""Every failure of a call, an exception per code of docs/errors.md; the last two are the client's own."""

from typing import Any

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


class SamefaceError(Exception):
    """A failure with a stable `code`, a sentence in `detail`, and `facts` that help to act.

    `status` and `request_id` are those of the response, or None where there was none.
    """

    code = "internal"

    def __init__(
        self, detail: str, *, status: int | None = None, request_id: str | None = None, **facts: Any
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.status = status
        self.request_id = request_id
        self.facts = facts


class UnreadableImage(SamefaceError):
    """The photo is damaged, cut short or empty."""

    code = "unreadable_image"


class Unauthorized(SamefaceError):
    """The server wants a key, and none or an unknown one was sent."""

    code = "unauthorized"


class Forbidden(SamefaceError):
    """The key lacks the scope."""

    code = "forbidden"


class NotFound(SamefaceError):
    """The server has nothing at this address."""

    code = "not_found"


class CollectionNotFound(SamefaceError):
    """No collection has this name."""

    code = "collection_not_found"


class PersonNotFound(SamefaceError):
    """Nobody in the collection has this id."""

    code = "person_not_found"


class EntryNotFound(SamefaceError):
    """The audit has no such entry."""

    code = "entry_not_found"


class FaceNotFound(SamefaceError):
    """The person has no face with this id."""

    code = "face_not_found"


class CalibrationNotFound(SamefaceError):
    """No calibration has this name."""

    code = "calibration_not_found"


class KeyNotFound(SamefaceError):
    """No key has this id."""

    code = "key_not_found"


class MethodNotAllowed(SamefaceError):
    """The address does not take this method."""

    code = "method_not_allowed"


class AlreadyExists(SamefaceError):
    """A collection or person has this name or id already."""

    code = "already_exists"


class IdempotencyKeyReused(SamefaceError):
    """The idempotency key was sent before with another request."""

    code = "idempotency_key_reused"


class ModelMismatch(SamefaceError):
    """The embeddings are of two models."""

    code = "model_mismatch"


class ImageTooLarge(SamefaceError):
    """The photo has more bytes or pixels than the server takes."""

    code = "image_too_large"


class BodyTooLarge(SamefaceError):
    """The request has more bytes than the server takes."""

    code = "body_too_large"


class TooManyImages(SamefaceError):
    """The request has more photos than the server takes."""

    code = "too_many_images"


class UnsupportedImage(SamefaceError):
    """The photo is of no format or type that can be sent."""

    code = "unsupported_image"


class UnsupportedMediaType(SamefaceError):
    """The route does not read this content type."""

    code = "unsupported_media_type"


class HostNotAllowed(SamefaceError):
    """A server without keys was called by another name than localhost."""

    code = "host_not_allowed"


class InvalidRequest(SamefaceError):
    """An argument does not fit; `facts` may list the fields."""

    code = "invalid_request"


class NoFaceFound(SamefaceError):
    """The photo must show a face."""

    code = "no_face_found"


class SeveralFacesFound(SamefaceError):
    """The photo must show exactly one face."""

    code = "several_faces_found"


class FaceTooSmall(SamefaceError):
    """The face has too few pixels to be compared."""

    code = "face_too_small"


class LowQualityFace(SamefaceError):
    """The face is below the quality that the caller asked for."""

    code = "low_quality_face"


class NotCalibrated(SamefaceError):
    """An error rate was asked of a model that has no calibration."""

    code = "not_calibrated"


class FmrNotSupported(SamefaceError):
    """The calibration's data is too little for a false match rate this low."""

    code = "fmr_not_supported"


class FpirNotSupported(SamefaceError):
    """The calibration's data is too little for such a rate in a gallery this large."""

    code = "fpir_not_supported"


class Overloaded(SamefaceError):
    """The server is busy, and was after the last retry."""

    code = "overloaded"


class RateLimited(SamefaceError):
    """The key has used up what it may use in this time."""

    code = "rate_limited"


class Internal(SamefaceError):
    """The server failed: its log has the details under `request_id`."""

    code = "internal"


class NotReady(SamefaceError):
    """The server is still starting."""

    code = "not_ready"


class StoreDamaged(SamefaceError):
    """The gallery's file is damaged."""

    code = "store_damaged"


class StoreRefused(SamefaceError):
    """The gallery's file cannot be used."""

    code = "store_refused"


class StoreUnavailable(SamefaceError):
    """The gallery's database does not answer."""

    code = "store_unavailable"


class IndexUnavailable(SamefaceError):
    """The gallery's index does not answer."""

    code = "index_unavailable"


class TimedOut(SamefaceError):
    """The request took longer than the server allows."""

    code = "timed_out"


class StorageFull(SamefaceError):
    """The server has no room left to write."""

    code = "storage_full"


class ConnectionFailed(SamefaceError):
    """The server cannot be reached, or the connection broke or was silent too long."""

    code = "connection_failed"


class UnexpectedAnswer(SamefaceError):
    """Something answered that is no sameface server: a proxy, perhaps."""

    code = "unexpected_answer"


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
