"""What is wrong with a request: its photos, what it asks for, or who sends it."""

from sameface_client.errors.failure import SamefaceError


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


class NotServedHere(SamefaceError):
    """The server's role leaves this to other servers of the same gallery."""

    code = "not_served_here"


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
