"""The bodies of requests: a form or JSON, and the lines or photos of a batch."""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from sameface.api.body.read_body import find_photos
from sameface.api.openapi.examples import show, to_lines
from sameface.api.openapi.schemas import define, refer_to, without_null
from sameface.api.stream.formats.media_types import ARROW, FORM, NDJSON, NPY

FILE = {"type": "string", "format": "binary"}  # by which tools know a file or plain bytes
BYTES = {"type": "string"}  # of which generated clients send none: they take the files above for lines
NPY_BODY = (
    "An array as numpy.save writes it: C order, little-endian float32, an embedding per row. Ids are the"
    " numbers of the rows, from 0."
)
ARROW_BODY = (
    "Record batches of at most 8 MB with the columns `id` (utf8) and `embedding` (list or fixed_size_list of"
    " float32); to enrol, also `person_id` and `name`. Needs the extra `arrow`."
)
PLAIN_TYPES = ("string", "number", "integer", "boolean")


def document_body(
    schema: type[BaseModel], example: dict[str, Any], *, required: bool = True
) -> dict[str, Any]:
    """The OpenAPI request body for `schema`: JSON with images as base64, or a form.

    JSON is first, because many generators of clients write code for the first kind of body alone.
    """
    name = f"{schema.__name__.removesuffix('Request')}Form"
    content = {
        "application/json": {"schema": refer_to(schema), **show(example)},
        "multipart/form-data": {"schema": define(name, to_form(schema))},
    }
    return {"requestBody": {"required": required, "content": content}}


def document_batch(
    schema: type[BaseModel], media_types: Sequence[str], *entries: dict[str, Any]
) -> dict[str, Any]:
    """The OpenAPI request body of a batch: NDJSON with a `schema` per line, or another of `media_types`."""
    photos = {"type": "array", "items": FILE, "description": "The file name is the id of a photo."}
    form = {
        "type": "object",
        "description": "Photos, as many as there are.",
        "properties": {"images": photos},
        "required": ["images"],
        "additionalProperties": False,
    }
    content = {
        NDJSON: {"schema": lines_of(refer_to(schema)), "example": to_lines(entries)},
        FORM: {"schema": define("PhotosForm", form)},
        NPY: {"schema": define("ProbeArray", {**BYTES, "description": NPY_BODY})},
        ARROW: {"schema": define("ArrowEntries", {**BYTES, "description": ARROW_BODY})},
    }
    return {
        "requestBody": {"required": True, "content": {name: content[name] for name in media_types}},
    }


def lines_of(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of NDJSON, whose every line fits `schema`: bytes, because few tools know how to read it."""
    return {**FILE, "contentMediaType": "application/x-ndjson", "contentSchema": schema}


def to_form(schema: type[BaseModel]) -> dict[str, Any]:
    """The schema of a form with the fields of `schema`: files, plain text, and JSON text for the rest."""
    described = schema.model_json_schema()
    described.pop("$defs", None)
    described.pop("title")
    photos = find_photos(schema)
    fields = {
        name: to_part(field, several_photos=photos.get(name))
        for name, field in described["properties"].items()
    }
    return {**described, "properties": fields}


def to_part(field: dict[str, Any], *, several_photos: bool | None) -> dict[str, Any]:
    """The schema of a part; `several_photos` is None for a field that is no photo."""
    about: dict[str, Any] = {key: field[key] for key in ("title", "description") if key in field}
    if several_photos is not None:
        return {**about, **({"type": "array", "items": FILE} if several_photos else FILE)}
    plain = without_null(field)
    plain.pop("examples", None)  # the page to try it would send them
    if plain.get("type") in PLAIN_TYPES:
        return plain
    return {**about, "type": "string", "description": f"{about['description']} As JSON text."}
