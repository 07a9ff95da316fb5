"""Turns every error into problem+json (RFC 9457) by one table; no traceback ever leaves the server."""

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeAlias

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic_core import ErrorDetails
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import Scope

from sameface.api.request_context import RequestContext, context_of, find_path, lies_under
from sameface.model.errors import (
    IndexRefused,
    IndexUnavailable,
    Overloaded,
    RateLimited,
    SamefaceError,
    StoreDamaged,
    StoreRefused,
    StoreUnavailable,
)

log = logging.getLogger("sameface.errors")

# The delay of a 429: a client that retries at once would be refused hundreds of times a second, and each
# refusal takes CPU time from the admitted requests.
REFUSAL_SECONDS = 0.25

FOR_THE_OPERATOR = (StoreDamaged, StoreRefused, StoreUnavailable, IndexRefused, IndexUnavailable)  # logged

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")

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
    "key_not_found": (404, "There is no such API key"),
    "entry_not_found": (404, "There is no such entry in the audit"),
    "method_not_allowed": (405, "This address does not take this method"),
    "already_exists": (409, "It exists already and differs"),
    "idempotency_key_reused": (409, "The Idempotency-Key belongs to another request"),
    "model_mismatch": (409, "The embeddings are of two models"),
    "image_too_large": (413, "The image is too large"),
    "body_too_large": (413, "The request is too large"),
    "too_many_images": (413, "The request has too many images"),
    "unsupported_image": (415, "The image format is not supported"),
    "unsupported_media_type": (415, "The content type is not supported"),
    "host_not_allowed": (421, "The server is not called by this name"),
    "not_served_here": (421, "Another server of this gallery does this"),
    "invalid_request": (422, "The request is not valid"),
    "no_face_found": (422, "No face was found"),
    "several_faces_found": (422, "More than one face was found"),
    "face_too_small": (422, "The face is too small"),
    "low_quality_face": (422, "The face's quality is too low"),
    "not_calibrated": (422, "The model has no calibration"),
    "fmr_not_supported": (422, "The calibration does not support a false match rate this low"),
    "fpir_not_supported": (422, "The calibration does not support a rate this low in this gallery"),
    "overloaded": (429, "The server is busy"),
    "rate_limited": (429, "The limit is reached"),
    "internal": (500, "Something went wrong here"),
    "not_ready": (503, "The server is still starting"),
    "store_damaged": (503, "The gallery's file is damaged"),
    "store_refused": (503, "The gallery's file cannot be used"),
    "store_unavailable": (503, "The gallery's database is away"),
    "index_unavailable": (503, "The search engine is away"),
    "index_refused": (503, "The search engine cannot be used"),
    "timed_out": (503, "The request took too long"),
    "storage_full": (507, "There is no room left to write"),
}


# Writes an error, and the problem that it would be, as another server's clients expect it.
Dialect: TypeAlias = Callable[[SamefaceError, dict[str, Any]], JSONResponse]


class Unauthorized(SamefaceError):
    """The request carries no key, or one that is unknown, expired, revoked or rotated out."""

    code = "unauthorized"


class NotFound(SamefaceError):
    """No route has this path."""

    code = "not_found"


class MethodNotAllowed(SamefaceError):
    """A route has this path, but not this method."""

    code = "method_not_allowed"


class BodyTooLarge(SamefaceError):
    """The body of a request, or the unread answers of a batch, have more bytes than allowed."""

    code = "body_too_large"


class TooManyImages(SamefaceError):
    """The request has more images than `max_images`."""

    code = "too_many_images"


class UnsupportedMediaType(SamefaceError):
    """The route does not read this content type."""

    code = "unsupported_media_type"


class InvalidRequest(SamefaceError):
    """The request does not fit the schema of the route."""

    code = "invalid_request"


class HostNotAllowed(SamefaceError):
    """A server without keys was called by another name than localhost."""

    code = "host_not_allowed"


class NotReady(SamefaceError):
    """The networks are still being loaded, or could not be loaded."""

    code = "not_ready"


class TimedOut(SamefaceError):
    """The request has exceeded its deadline."""

    code = "timed_out"


class Problem(JSONResponse):
    """A response with a problem+json body."""

    media_type = "application/problem+json"


def describe_problem(code: str, detail: str, request_id: str) -> dict[str, Any]:
    """The problem+json body for `code`, without the error's facts."""
    status, title = PROBLEMS[code]
    return {
        "type": f"urn:sameface:problem:{code}",
        "title": title,
        "status": status,
        "code": code,
        "detail": detail,
        "request_id": request_id,
    }


def to_problem(error: SamefaceError, scope: Scope) -> JSONResponse:
    """The response for `error`, with the headers that its code needs: problem+json, or what clients of
    another server expect under its paths."""
    headers = {}
    if error.code == "unauthorized":
        headers["WWW-Authenticate"] = "Bearer"
    if "retry_after_seconds" in error.facts:
        headers["Retry-After"] = str(error.facts["retry_after_seconds"])
    body = describe_failure(error, context_of(scope))
    dialects: dict[str, Dialect] = scope["app"].state.dialects
    for prefix, write in dialects.items():
        if lies_under(find_path(scope), prefix):
            response = write(error, body)
            response.headers.update(headers)
            return response
    return Problem(body, status_code=body["status"], headers=headers)


def describe_failure(error: SamefaceError, context: RequestContext) -> dict[str, Any]:
    """The problem+json body for `error` with its facts; a code missing in PROBLEMS becomes `internal`."""
    if error.code not in PROBLEMS:
        log.error("%s: %s", type(error).__name__, error.detail)
        error = internal_error()
    elif isinstance(error, FOR_THE_OPERATOR):
        log.error("request %s: %s", context.request_id, error.detail)
    context.problem = error.code
    return describe_problem(error.code, error.detail, context.request_id) | error.facts


def internal_error() -> SamefaceError:
    """The error that a client gets for a defect; it reveals nothing but the request id."""
    return SamefaceError("The server failed; its log has the details under this request id.")


# What pydantic's types of errors are called here; all others are said in pydantic's words.
PHRASES = {
    "missing": "is missing",
    "extra_forbidden": "is not known here",
    "string_pattern_mismatch": "may have letters, digits and . _ ~ - alone; . and .. are no ids",
}


def to_invalid_request(errors: Sequence[Any], fields: Collection[str] = ()) -> InvalidRequest:
    """An InvalidRequest from pydantic's `errors`, without the quoted input: it may be somebody's face.

    If a field is unknown, the sentence names those that the request takes, `fields`.
    """
    found = [{"field": name_field(error), "problem": name_problem(error)} for error in errors[:20]]
    sentence = "; ".join(f"{entry['field']} {entry['problem']}" for entry in found[:5])
    if fields and any(error["type"] == "extra_forbidden" and len(error["loc"]) == 1 for error in errors):
        sentence += f". The fields of this request are {', '.join(fields)}"
    return InvalidRequest(f"The request does not fit: {sentence}.", errors=found)


def name_problem(error: ErrorDetails) -> str:
    """What is wrong with a field, to be read after its name."""
    said = error["msg"].removeprefix("Value error, ").replace("Input should", "should")
    return PHRASES.get(error["type"], said[:1].lower() + said[1:])


def name_field(error: ErrorDetails) -> str:
    """The path of the field that pydantic's `error` is about, joined by dots."""
    return ".".join(str(part) for part in error["loc"])[:100] or "body"


def add_error_handlers(app: FastAPI) -> None:
    """Answer expected exceptions with their problem; TimeLimit answers all others as `internal`."""

    @app.exception_handler(SamefaceError)
    async def on_failure(request: Request, error: SamefaceError) -> JSONResponse:
        if isinstance(error, Overloaded | RateLimited):
            error.__traceback__ = None  # frees the photos that its frames hold
            await asyncio.sleep(REFUSAL_SECONDS)
        return to_problem(error, request.scope)

    @app.exception_handler(RequestValidationError)
    async def on_invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        return to_problem(to_invalid_request(error.errors()), request.scope)

    @app.exception_handler(HTTPException)
    async def on_http(request: Request, error: HTTPException) -> JSONResponse:
        named = MethodNotAllowed if error.status_code == 405 else NotFound
        problem = to_problem(named(f"{request.method} {request.url.path}: {error.detail}."), request.scope)
        if error.status_code == 405:
            problem.headers["Allow"] = ", ".join(find_methods(app, request.scope))
        return problem


def find_methods(app: FastAPI, scope: Scope) -> list[str]:
    """The methods that the path of a request takes; Starlette names those of the first route alone."""
    return [
        method
        for method in METHODS
        if any(route.matches({**scope, "method": method})[0] == Match.FULL for route in app.routes)
    ]
