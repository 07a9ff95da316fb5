"""Every failure that a caller can act on: a stable code, a sentence, and the facts that help."""

from typing import Any


class SamefaceError(Exception):
    """A failure with a stable `code`; `facts` go to the caller beside the sentence."""

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
    """The bytes are no JPEG, PNG, WebP or BMP."""

    code = "unsupported_image"


class ImageTooLarge(SamefaceError):
    """More bytes or more pixels than the limit."""

    code = "image_too_large"


# The faces in it.


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
    """No decision can be made by this threshold or this rate."""

    code = "invalid_request"


class FmrNotSupported(SamefaceError):
    """The calibration's data is too little for a false match rate this low."""

    code = "fmr_not_supported"


class FpirNotSupported(SamefaceError):
    """The calibration's data is too little for a rate this low in a gallery this large."""

    code = "fpir_not_supported"


class CalibrationRefused(SamefaceError):
    """A calibration is damaged, of another bundle, or its data cannot carry one."""

    code = "calibration_refused"


class LabelsRefused(SamefaceError):
    """A folder of labelled photos, or a list about it, cannot be measured on."""

    code = "labels_refused"


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
    """The person has no such face."""

    code = "face_not_found"


class CalibrationNotFound(SamefaceError):
    """No calibration has this name."""

    code = "calibration_not_found"


class AlreadyExists(SamefaceError):
    """Something else has this name or id."""

    code = "already_exists"


class IdempotencyKeyReused(SamefaceError):
    """The key was sent before with another body."""

    code = "idempotency_key_reused"


class InvalidEmbedding(SamefaceError):
    """The numbers cannot be an embedding of this model."""

    code = "invalid_request"


class InvalidId(SamefaceError):
    """Nothing can have this name or id: no address could hold it."""

    code = "invalid_request"


class StorageFull(SamefaceError):
    """The disk has no room for a write."""

    code = "storage_full"


class StoreRefused(SamefaceError):
    """The gallery's file is of a newer version."""

    code = "store_refused"


class ArchiveRefused(SamefaceError):
    """A file is no archive of a collection, or not as it was written."""

    code = "archive_refused"


class ReembedRefused(SamefaceError):
    """A collection lacks what its embeddings could be made again from."""

    code = "reembed_refused"


class PairsRefused(SamefaceError):
    """A list of pairs to measure accuracy on cannot be read."""

    code = "pairs_refused"


class UpkeepRunning(SamefaceError):
    """Another process is importing or reembedding."""

    code = "upkeep_running"


# The machine.


class Overloaded(SamefaceError):
    """The queue is full: come back later."""

    code = "overloaded"


class BundleRefused(SamefaceError):
    """A bundle's hash, shape or contract does not fit."""

    code = "bundle_refused"


class PullFailed(SamefaceError):
    """No source delivered the file with the hash it must have."""

    code = "pull_failed"


class CannotServe(SamefaceError):
    """The server cannot start as it is set up."""

    code = "cannot_serve"


class DeviceUnavailable(SamefaceError):
    """A GPU was required and there is no working one."""

    code = "device_unavailable"
