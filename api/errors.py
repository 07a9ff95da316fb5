"""Turns every failure into problem+json (RFC 9457) by one table; no traceback ever leaves."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic_core import ErrorDetails
from starlette.exceptions import HTTPException
from starlette.types import Scope

from sameface.api.middleware.request_context import RequestContext, context_of
from sameface.model.errors import Overloaded, SamefaceError

log = logging.getLogger("sameface.errors")

# A client that comes back at once would be refused hundreds of times a second, on the cores that those who
# were admitted wait for.
REFUSAL_SECONDS = 0.25

# code: status, title. The table in docs/errors.md is tested against this one.
PROBLEMS: dict[str, tuple[int, str]] = {
    "unreadable_image": (400, "The image cannot be decoded"),
    "unauthorized": (401, "A valid API key is needed"),
    "forbidden": (403, "The API key lacks the scope"),
    "not_found": (404, "There is nothing at this address"),
    "collection_not_found": (404, "There is no such collection"),
    "person_not_found": (404, "There is no such person"),
    "face_not_found": (404, "There is no such face"),
    "calibration_not_found": (404, "There is no such calibration"),
    "method_not_allowed": (405, "This address does not take this method"),
    "already_exists": (409, "It exists already and differs"),
    "idempotency_key_reused": (409, "The Idempotency-Key belongs to another request"),
    "model_mismatch": (409, "The embeddings are of two models"),
    "image_too_large": (413, "The image is too large"),
    "body_too_large": (413, "The request is too large"),
    "too_many_images": (413, "The request has too many images"),
    "unsupported_image": (415, "The image format is not supported"),
    "unsupported_media_type": (415, "The content type is not supported"),
    "invalid_request": (422, "The request is not valid"),
    "no_face_found": (422, "No face was found"),
    "several_faces_found": (422, "More than one face was found"),
    "face_too_small": (422, "The face is too small"),
    "low_quality_face": (422, "The face's quality is too low"),
    "not_calibrated": (422, "The model has no calibration"),
    "fmr_not_supported": (422, "The calibration does not support a false match rate this low"),
    "fpir_not_supported": (422, "The calibration does not support a rate this low in this gallery"),
    "overloaded": (429, "The server is busy"),
    "internal": (500, "Something went wrong here"),
    "not_ready": (503, "The server is still starting"),
    "timed_out": (503, "The request took too long"),
    "storage_full": (507, "There is no room left to write"),
}


class Unauthorized(SamefaceError):
    """The request carries no key, or an unknown one."""

    code = "unauthorized"


class Forbidden(SamefaceError):
    """The key is known and lacks the scope."""

    code = "forbidden"


class NotFound(SamefaceError):
    """No route has this address."""

    code = "not_found"


class MethodNotAllowed(SamefaceError):
    """The route has this address and takes other methods."""

    code = "method_not_allowed"


class BodyTooLarge(SamefaceError):
    """More bytes than all that a request may carry."""

    code = "body_too_large"


class TooManyImages(SamefaceError):
    """More images than a request may carry."""

    code = "too_many_images"


class UnsupportedMediaType(SamefaceError):
    """Neither multipart nor JSON."""

    code = "unsupported_media_type"


class InvalidRequest(SamefaceError):
    """The body does not have the fields that the route takes."""

    code = "invalid_request"


class NotReady(SamefaceError):
    """The networks are still being loaded."""

    code = "not_ready"


class TimedOut(SamefaceError):
    """The time limit of a request is over."""

    code = "timed_out"


class Problem(JSONResponse):
    """A failure as the client sees it."""

    media_type = "application/problem+json"


def describe_problem(code: str, detail: str, request_id: str) -> dict[str, Any]:
    """The body of a problem, without the error's facts."""
    status, title = PROBLEMS[code]
    return {
        "type": f"urn:sameface:problem:{code}",
        "title": title,
        "status": status,
        "code": code,
        "detail": detail,
        "request_id": request_id,
    }


def to_problem(error: SamefaceError, scope: Scope) -> Problem:
    """The response for a failure."""
    headers = {}
    if error.code == "unauthorized":
        headers["WWW-Authenticate"] = "Bearer"
    if "retry_after_seconds" in error.facts:
        headers["Retry-After"] = str(error.facts["retry_after_seconds"])
    body = describe_failure(error, context_of(scope))
    return Problem(body, status_code=body["status"], headers=headers)


def describe_failure(error: SamefaceError, context: RequestContext) -> dict[str, Any]:
    """The body of a problem with the error's facts; a code that is not in the table is a defect."""
    if error.code not in PROBLEMS:
        log.error("%s: %s", type(error).__name__, error.detail)
        error = internal_error()
    context.problem = error.code
    return describe_problem(error.code, error.detail, context.request_id) | error.facts


def internal_error() -> SamefaceError:
    """The failure that a client gets for a defect: no more than the id to ask about."""
    return SamefaceError("The server failed; its log has the details under this request id.")


def to_invalid_request(errors: Sequence[Any]) -> InvalidRequest:
    """The errors of pydantic, without the input that they quote: it may be somebody's face."""
    found = [{"field": name_field(error), "problem": error["msg"]} for error in errors[:20]]
    sentence = "; ".join(f"{entry['field']}: {entry['problem']}" for entry in found[:5])
    return InvalidRequest(f"The request does not fit: {sentence}.", errors=found)


def name_field(error: ErrorDetails) -> str:
    """The path of the field that an error of pydantic is about."""
    return ".".join(str(part) for part in error["loc"])[:100] or "body"


def add_error_handlers(app: FastAPI) -> None:
    """Let the table answer for every exception that a route raises."""

    @app.exception_handler(SamefaceError)
    async def on_failure(request: Request, error: SamefaceError) -> Problem:
        if isinstance(error, Overloaded):
            error.__traceback__ = None  # its frames hold the photos
            await asyncio.sleep(REFUSAL_SECONDS)
        return to_problem(error, request.scope)

    @app.exception_handler(RequestValidationError)
    async def on_invalid(request: Request, error: RequestValidationError) -> Problem:
        return to_problem(to_invalid_request(error.errors()), request.scope)

    @app.exception_handler(HTTPException)
    async def on_http(request: Request, error: HTTPException) -> Problem:
        named = MethodNotAllowed if error.status_code == 405 else NotFound
        problem = to_problem(named(f"{request.method} {request.url.path}: {error.detail}."), request.scope)
        problem.headers.update(error.headers or {})
        return problem
