"""Every failure that a caller can act on: a stable code, a sentence, and the facts that help."""

from typing import Any


class SamefaceError(Exception):
    """A failure with a stable `code`, a sentence in `detail`, and `facts` that the caller gets as fields."""

    code = "internal"

    def __init__(self, detail: str, **facts: Any) -> None:
        super().__init__(detail)
        self.detail = detail
        self.facts = facts


# The photo itself.


class UnreadableImage(SamefaceError):
    """The bytes claim to be an image of a supported format and cannot be decoded."""

    code = "unreadable_image"


class UnsupportedImage(SamefaceError):
    """The bytes are of none of the formats that are read, or of one whose extra is not installed."""

    code = "unsupported_image"


class ImageTooLarge(SamefaceError):
    """The photo has more bytes or pixels than the limit."""

    code = "image_too_large"


# The faces in the photo.


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


# The decision.


class NotCalibrated(SamefaceError):
    """An error rate was asked of a bundle that has no calibration."""

    code = "not_calibrated"


class InvalidRule(SamefaceError):
    """The threshold or the target rate is out of range, or both were given."""

    code = "invalid_request"


class FmrNotSupported(SamefaceError):
    """The calibration's data is too little for a false match rate this low."""

    code = "fmr_not_supported"


class FpirNotSupported(SamefaceError):
    """The calibration's data is too little for a false positive rate this low in a gallery this large."""

    code = "fpir_not_supported"


class CalibrationRefused(SamefaceError):
    """A calibration is damaged or of another bundle, or its name is invalid or taken."""

    code = "calibration_refused"


class ModelMismatch(SamefaceError):
    """Embeddings of two models were about to be compared."""

    code = "model_mismatch"


# The gallery.


class CollectionNotFound(SamefaceError):
    """No collection has this name."""

    code = "collection_not_found"


class PersonNotFound(SamefaceError):
    """Nobody in the collection has this id."""

    code = "person_not_found"


class FaceNotFound(SamefaceError):
    """The person has no face with this id."""

    code = "face_not_found"


class CalibrationNotFound(SamefaceError):
    """No calibration has this name."""

    code = "calibration_not_found"


class EntryNotFound(SamefaceError):
    """No entry of the audit has this id."""

    code = "entry_not_found"


class AlreadyExists(SamefaceError):
    """A collection, person or face has this name or id already."""

    code = "already_exists"


class IdempotencyKeyReused(SamefaceError):
    """The idempotency key was sent before with another request."""

    code = "idempotency_key_reused"


class InvalidEmbedding(SamefaceError):
    """The numbers cannot be an embedding of this model."""

    code = "invalid_request"


class InvalidId(SamefaceError):
    """The name or id is not 1 to 128 characters that fit into a URL."""

    code = "invalid_request"


class InvalidArgument(SamefaceError):
    """A caller in this process passed something that no request over HTTP could hold."""

    code = "invalid_request"


class StorageFull(SamefaceError):
    """The disk has no room for a write."""

    code = "storage_full"


class StoreRefused(SamefaceError):
    """The gallery's file cannot be used: deleted, replaced, read-only, or of another version of sameface."""

    code = "store_refused"


class StoreUnavailable(SamefaceError):
    """The gallery's database is away or busy, and will be back: retry."""

    code = "store_unavailable"


class IndexUnavailable(SamefaceError):
    """Milvus is away, or has not yet caught up: searches must wait, everything else goes on."""

    code = "index_unavailable"


class IndexRefused(SamefaceError):
    """Milvus cannot be used as it is: its address, the token, or a collection of another shape."""

    code = "index_refused"


class NotServedHere(SamefaceError):
    """This server's role leaves such requests to other servers of the same gallery."""

    code = "not_served_here"


class StoreDamaged(SamefaceError):
    """The gallery's file is not what was written into it."""

    code = "store_damaged"


class SecretKeyRefused(SamefaceError):
    """The secret key is too short, or its file cannot be read or made."""

    code = "secret_key_refused"


class AuditRefused(SamefaceError):
    """A file is no export of an audit, or cannot be read or written."""

    code = "audit_refused"


class UpkeepRunning(SamefaceError):
    """Another process holds the lock for imports and re-embedding."""

    code = "upkeep_running"


# The caller.


class Forbidden(SamefaceError):
    """The caller's key is known, and may not do this."""

    code = "forbidden"


class KeyNotFound(SamefaceError):
    """No API key has this id, or the caller's own may not manage it."""

    code = "key_not_found"


class RateLimited(SamefaceError):
    """The caller, or all callers together, may ask for no more now."""

    code = "rate_limited"


# The machine.


class Overloaded(SamefaceError):
    """The work queue is full: retry later."""

    code = "overloaded"


class BundleRefused(SamefaceError):
    """A bundle is missing, damaged, or not what its contract says."""

    code = "bundle_refused"


class FolderRefused(SamefaceError):
    """A folder cannot be read or written, or has not got what a command looks for in it."""

    code = "folder_refused"


class PullFailed(SamefaceError):
    """No source delivered the file with the hash it must have."""

    code = "pull_failed"


class CannotServe(SamefaceError):
    """The server or a command cannot run with these settings."""

    code = "cannot_serve"


class DeviceUnavailable(SamefaceError):
    """A GPU was requested, and none works."""

    code = "device_unavailable"


class PrecisionUnavailable(SamefaceError):
    """A lower precision was requested, and this machine does not have it or it changes embeddings."""

    code = "precision_unavailable"
