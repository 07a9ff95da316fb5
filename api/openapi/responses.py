"""The responses of a route that FastAPI cannot infer: its problems, its example, the lines of a batch."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from sameface.api.errors import PROBLEMS, describe_problem
from sameface.api.openapi.bodies import FILE, lines_of
from sameface.api.openapi.examples import show, to_lines
from sameface.api.openapi.links import Links
from sameface.api.openapi.schemas import refer_to
from sameface.api.schemas.batch import BatchFailed
from sameface.api.schemas.problems import Problem
from sameface.api.stream.formats.media_types import ARROW, NDJSON

Responses: TypeAlias = dict[int | str, dict[str, Any]]

EVERYWHERE = (
    "host_not_allowed",
    "internal",
    "not_served_here",
    "timed_out",
)  # middleware, role
KEY_PROBLEMS = ("unauthorized", "forbidden", "not_ready", "rate_limited", "invalid_request")
STORE_PROBLEMS = ("store_damaged", "store_refused", "store_unavailable")
COLLECTION_PROBLEMS = (*KEY_PROBLEMS, *STORE_PROBLEMS, "collection_not_found", "model_mismatch")
INDEX_PROBLEMS = ("index_unavailable", "index_refused")
RATE_PROBLEMS = ("not_calibrated", "fpir_not_supported", "calibration_not_found")
BATCH_PROBLEMS = (*COLLECTION_PROBLEMS, "unsupported_media_type", "overloaded")
BODY_PROBLEMS = (
    *KEY_PROBLEMS,
    "body_too_large",
    "image_too_large",
    "too_many_images",
    "unsupported_media_type",
    "overloaded",
)
PHOTO_PROBLEMS = (*BODY_PROBLEMS, "unreadable_image", "unsupported_image", "several_faces_found")

ARROW_ANSWER = (
    "Rows of `id`, `person_id`, `name`, `similarity`, `match` and `error` (the problem as JSON): one per"
    " candidate, best first, or one per person enrolled."
)
SECONDS = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}}
HEADERS = {
    "unauthorized": {"WWW-Authenticate": {"description": "`Bearer`.", "schema": {"type": "string"}}},
    "overloaded": SECONDS,
    "rate_limited": SECONDS,
    "not_ready": SECONDS,
    "index_unavailable": SECONDS,
}


def responses(
    example: dict[str, Any] | None, *codes: str, success: int = 200, links: Links | None = None
) -> Responses:
    """The OpenAPI responses of a route: `example` with the status `success`, or a problem of `codes`."""
    return {success: answer(example, links), **document_problems(*codes)}


def answer(example: dict[str, Any] | None, links: Links | None = None) -> dict[str, Any]:
    """The OpenAPI response of a request that succeeds, whose schema FastAPI knows."""
    content = {"content": {"application/json": show(example)}} if example else {}
    return {**content, **({"links": links} if links else {})}


def stream(line: Any, lines: Sequence[dict[str, Any]], *codes: str) -> Responses:
    """The OpenAPI responses of a batch: lines of the type `line`, or before them a problem of `codes`."""
    schema = lines_of(refer_to(line | BatchFailed, "serialization"))
    content = {
        NDJSON: {"schema": schema, "example": to_lines(lines)},
        ARROW: {"schema": {**FILE, "description": ARROW_ANSWER}},
    }
    return {200: {"content": content}, **document_problems(*codes)}


def document_problems(*codes: str) -> Responses:
    """The OpenAPI responses for `codes`, and for what every route may answer, by status."""
    documented: Responses = {}
    for code in dict.fromkeys((*codes, *EVERYWHERE)):
        status, title = PROBLEMS[code]
        shown = {"schema": refer_to(Problem), "examples": {}}
        new = {"description": "", "content": {"application/problem+json": shown}}
        response = documented.setdefault(status, new)
        response["description"] = f"{response['description']}, `{code}`".removeprefix(", ")
        problem = describe_problem(code, f"{title}.", "4f1c")
        response["content"]["application/problem+json"]["examples"][code] = {"value": problem}
        if code in HEADERS:
            response["headers"] = HEADERS[code]
    return {status: documented[status] for status in sorted(documented)}
