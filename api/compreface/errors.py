"""Errors as clients of CompreFace expect them: a message, and a number of CompreFace's own."""

from typing import Any

from fastapi.responses import JSONResponse

from sameface.api.errors import InvalidRequest, Unauthorized
from sameface.model.errors import SamefaceError

# code: status, CompreFace's number. A test holds that every code of api/errors.py has a row.
ANSWERS: dict[str, tuple[int, int]] = {
    "unreadable_image": (400, 28),
    "unauthorized": (404, 10),
    "forbidden": (403, 0),
    "not_found": (404, 0),
    "collection_not_found": (404, 10),
    "person_not_found": (404, 42),
    "face_not_found": (404, 44),
    "calibration_not_found": (404, 0),
    "key_not_found": (404, 10),
    "entry_not_found": (404, 0),
    "method_not_allowed": (404, 0),
    "already_exists": (400, 43),
    "idempotency_key_reused": (400, 0),
    "model_mismatch": (409, 0),
    "image_too_large": (413, 0),
    "body_too_large": (413, 0),
    "too_many_images": (413, 0),
    "unsupported_image": (400, 21),
    "unsupported_media_type": (400, 34),
    "host_not_allowed": (421, 0),
    "not_served_here": (421, 0),
    "invalid_request": (400, 26),
    "no_face_found": (400, 28),
    "several_faces_found": (400, 31),
    "face_too_small": (400, 28),
    "low_quality_face": (400, 28),
    "not_calibrated": (400, 0),
    "fmr_not_supported": (400, 0),
    "fpir_not_supported": (400, 0),
    "overloaded": (429, 0),
    "rate_limited": (429, 0),
    "internal": (500, 0),
    "not_ready": (503, 0),
    "store_damaged": (503, 0),
    "store_refused": (503, 0),
    "store_unavailable": (503, 0),
    "index_unavailable": (503, 0),
    "index_refused": (503, 0),
    "timed_out": (503, 0),
    "storage_full": (507, 0),
}


class KeyMissing(Unauthorized):
    """The request has no `x-api-key`."""

    answer = (400, 20)


class KeyNotUuid(Unauthorized):
    """The key is no UUID."""

    answer = (400, 26)


class FieldEmpty(InvalidRequest):
    """A field that is needed is empty."""

    answer = (400, 5)


class BadPredictionCount(InvalidRequest):
    """`prediction_count` is below 1."""

    answer = (400, 12)


class NotBase64(InvalidRequest):
    """A photo in JSON is no base64."""

    answer = (400, 21)


class ParameterMissing(InvalidRequest):
    """A parameter that is needed is missing."""

    answer = (400, 33)


class PartMissing(InvalidRequest):
    """The body lacks a photo."""

    answer = (400, 34)


class BadSubject(InvalidRequest):
    """The name is too long, or has a character that a path cannot hold."""

    answer = (400, 36)


class BadEmbedding(InvalidRequest):
    """The numbers cannot be an embedding of the recogniser."""

    answer = (400, 37)


def write_error(error: SamefaceError, problem: dict[str, Any]) -> JSONResponse:
    """The response for `error`, which `problem` describes."""
    status, number = getattr(error, "answer", None) or ANSWERS[problem["code"]]
    return JSONResponse({"message": problem["detail"], "code": number}, status)
