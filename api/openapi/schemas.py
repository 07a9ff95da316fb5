"""Schemas as OpenAPI has them: named, and where nothing but text can be sent, without null."""

from functools import cache
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import JsonSchemaMode

ADDRESS = "#/components/schemas/"


@cache
def refer_to(kind: Any, mode: JsonSchemaMode = "validation") -> dict[str, Any]:
    """A reference to the schema of `kind`; its definitions stand beside it until they are gathered."""
    # As the items of a list, since pydantic names all schemas but the outermost.
    described = TypeAdapter(list[kind]).json_schema(ref_template=ADDRESS + "{model}", mode=mode)
    return {**described["items"], "$defs": described["$defs"]}


def define(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """A reference to `schema`, which is to be called `name`."""
    return {"$ref": ADDRESS + name, "$defs": {name: {"title": name, **schema}}}


def gather_schemas(contract: dict[str, Any]) -> dict[str, Any]:
    """The contract with all definitions, wherever they stand, among its components."""
    found: dict[str, Any] = {}
    gathered: dict[str, Any] = without_definitions(contract, found)
    schemas = found | gathered["components"]["schemas"]
    components = {**gathered["components"], "schemas": dict(sorted(schemas.items()))}
    return {**gathered, "components": components}


def without_definitions(node: Any, found: dict[str, Any]) -> Any:
    """A copy of `node` without its definitions, which are added to those that were `found`."""
    if isinstance(node, list):
        return [without_definitions(each, found) for each in node]
    if not isinstance(node, dict):
        return node
    found.update(node.get("$defs", {}))
    return {key: without_definitions(value, found) for key, value in node.items() if key != "$defs"}


def without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a value in an address, a header or a form, which may be left out but never be null."""
    choices = [choice for choice in schema.get("anyOf", []) if choice != {"type": "null"}]
    if len(choices) == 1:
        schema = {**choices[0], **{key: value for key, value in schema.items() if key != "anyOf"}}
    return {key: value for key, value in schema.items() if (key, value) != ("default", None)}
