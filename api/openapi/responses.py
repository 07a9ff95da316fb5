"""What FastAPI cannot infer from a route: its body in two encodings, and its problems."""

import json
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from sameface.api.body.read_body import find_photos
from sameface.api.errors import describe_problem

KEY_PROBLEMS = ("unauthorized", "forbidden", "host_not_allowed", "not_ready", "timed_out")
COLLECTION_PROBLEMS = (*KEY_PROBLEMS, "collection_not_found", "model_mismatch", "invalid_request")
RATE_PROBLEMS = ("not_calibrated", "fpir_not_supported", "calibration_not_found")
BATCH_PROBLEMS = (*COLLECTION_PROBLEMS, "unsupported_media_type", "overloaded")
PHOTO_PROBLEMS = (
    *KEY_PROBLEMS,
    "unreadable_image",
    "image_too_large",
    "body_too_large",
    "too_many_images",
    "unsupported_image",
    "unsupported_media_type",
    "invalid_request",
    "several_faces_found",
    "overloaded",
)


def document_body(schema: type[BaseModel]) -> dict[str, Any]:
    """The OpenAPI request body for `schema`: a form, or JSON with images as base64."""
    in_json = schema.model_json_schema()
    in_form = schema.model_json_schema()
    example: dict[str, Any] = {}
    photos = find_photos(schema)
    for name, field in in_form["properties"].items():
        if name in photos:
            photo = {"base64": "/9j/4AAQSkZJRgABAQAAAQABAAD..."}
            file = {"type": "string", "contentMediaType": "application/octet-stream"}
            example[name] = [photo] if photos[name] else photo
            in_form["properties"][name] = {
                **({"type": "array", "items": file} if photos[name] else file),
                "description": field.get("description", ""),
            }
    content = {
        "multipart/form-data": {"schema": in_form},
        "application/json": {"schema": in_json, "example": example},
    }
    return {"requestBody": {"required": True, "content": content}}


def document_batch(schema: type[BaseModel]) -> dict[str, Any]:
    """The OpenAPI request body of a batch: NDJSON with a `schema` per line, or a form of photos."""
    photos = {"images": {"type": "array", "items": {"type": "string", "contentMediaType": "image/*"}}}
    content = {
        "application/x-ndjson": {
            "schema": schema.model_json_schema(),
            "example": '{"id": "1", "image": {"base64": "/9j/4AAQSkZJRgABAQAAAQABAAD..."}}\n',
        },
        "multipart/form-data": {"schema": {"type": "object", "properties": photos}},
    }
    return {"requestBody": {"required": True, "content": content}}


def stream(lines: Sequence[dict[str, Any]], *codes: str) -> dict[int | str, dict[str, Any]]:
    """The OpenAPI responses of a batch: the example `lines`, or before the first a problem of `codes`."""
    example = "".join(json.dumps(line) + "\n" for line in lines)
    return responses(None, *codes) | {200: {"content": {"application/x-ndjson": {"example": example}}}}


def responses(
    example: dict[str, Any] | None, *codes: str, success: int = 200
) -> dict[int | str, dict[str, Any]]:
    """The OpenAPI responses of a route: `example` with the status `success`, or a problem of `codes`."""
    shown = {"content": {"application/json": {"example": example}}} if example else {}
    documented: dict[int | str, dict[str, Any]] = {success: shown}
    for code in codes:
        problem = describe_problem(code, "What exactly happened and what to do about it.", "4f1c")
        response = documented.setdefault(
            problem["status"], {"description": "", "content": {"application/problem+json": {"examples": {}}}}
        )
        response["description"] = f"{response['description']}, `{code}`".removeprefix(", ")
        response["content"]["application/problem+json"]["examples"][code] = {"value": problem}
    return documented
