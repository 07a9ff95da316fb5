"""Errors as clients of Rekognition expect them: `__type` names the class that they raise."""

from typing import Any

from fastapi.responses import JSONResponse

from sameface.api.errors import InvalidRequest, Unauthorized
from sameface.model.errors import AlreadyExists, SamefaceError

# code: status, type. A test holds that every code of api/errors.py has a row.
ANSWERS: dict[str, tuple[int, str]] = {
    "unreadable_image": (400, "InvalidImageFormatException"),
    "unauthorized": (400, "UnrecognizedClientException"),
    "forbidden": (400, "AccessDeniedException"),
    "not_found": (400, "UnknownOperationException"),
    "collection_not_found": (400, "ResourceNotFoundException"),
    "person_not_found": (400, "ResourceNotFoundException"),
    "face_not_found": (400, "InvalidParameterException"),
    "calibration_not_found": (400, "ResourceNotFoundException"),
    "key_not_found": (400, "ResourceNotFoundException"),
    "entry_not_found": (400, "ResourceNotFoundException"),
    "method_not_allowed": (400, "UnknownOperationException"),
    "already_exists": (400, "ResourceAlreadyExistsException"),
    "idempotency_key_reused": (400, "IdempotentParameterMismatchException"),
    "model_mismatch": (400, "InvalidParameterException"),
    "image_too_large": (400, "ImageTooLargeException"),
    "body_too_large": (400, "ImageTooLargeException"),
    "too_many_images": (400, "InvalidParameterException"),
    "unsupported_image": (400, "InvalidImageFormatException"),
    "unsupported_media_type": (400, "InvalidParameterException"),
    "host_not_allowed": (400, "AccessDeniedException"),
    "not_served_here": (400, "AccessDeniedException"),
    "invalid_request": (400, "InvalidParameterException"),
    "no_face_found": (400, "InvalidParameterException"),
    "several_faces_found": (400, "InvalidParameterException"),
    "face_too_small": (400, "InvalidParameterException"),
    "low_quality_face": (400, "InvalidParameterException"),
    "not_calibrated": (400, "InvalidParameterException"),
    "fmr_not_supported": (400, "InvalidParameterException"),
    "fpir_not_supported": (400, "InvalidParameterException"),
    "overloaded": (400, "ThrottlingException"),
    "rate_limited": (400, "ProvisionedThroughputExceededException"),
    "internal": (500, "InternalServerError"),
    "not_ready": (503, "ServiceUnavailableException"),
    "store_damaged": (503, "ServiceUnavailableException"),
    "store_refused": (503, "ServiceUnavailableException"),
    "store_unavailable": (503, "ServiceUnavailableException"),
    "index_unavailable": (503, "ServiceUnavailableException"),
    "index_refused": (503, "ServiceUnavailableException"),
    "timed_out": (503, "ServiceUnavailableException"),
    "storage_full": (503, "ServiceUnavailableException"),
}


class TokenMissing(Unauthorized):
    """The request is not signed."""

    kind = "MissingAuthenticationTokenException"


class SignatureIncomplete(Unauthorized):
    """A part of the signature is missing."""

    kind = "IncompleteSignatureException"


class SignatureWrong(Unauthorized):
    """The signature is another one than the request needs, or too old."""

    kind = "InvalidSignatureException"


class BadPageToken(InvalidRequest):
    """`NextToken` is none that was handed out."""

    kind = "InvalidPaginationTokenException"


class NoBucketHere(InvalidRequest):
    """The image is in S3, where this server does not look."""

    kind = "InvalidS3ObjectException"


class UserExists(AlreadyExists):
    """There is a user with this id."""

    kind = "ConflictException"


class AwsJson(JSONResponse):
    """An answer in the JSON of AWS, with the header from which clients read the id of their request."""

    media_type = "application/x-amz-json-1.1"


def write_error(error: SamefaceError, problem: dict[str, Any]) -> JSONResponse:
    """The response for `error`, which `problem` describes."""
    status, kind = ANSWERS[problem["code"]]
    if problem["code"] == "rate_limited" and "retry_after_seconds" not in problem:  # waiting does not help
        kind = "ServiceQuotaExceededException"
    body = {"__type": getattr(error, "kind", kind), "Message": problem["detail"]}
    return AwsJson(body, status, {"x-amzn-RequestId": problem["request_id"]})
