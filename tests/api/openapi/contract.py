"""The committed contract, taken apart for the tests."""

import json
from collections.abc import Iterator
from typing import Any

import jsonschema_rs

from tests.api.openapi.write import OPENAPI

CONTRACT = json.loads(OPENAPI.read_text("utf-8"))
SCHEMAS = CONTRACT["components"]["schemas"]
OPERATIONS = {
    operation["operationId"]: {**operation, "method": method.upper(), "path": path}
    for path, operations in CONTRACT["paths"].items()
    for method, operation in operations.items()
}


def walk(node: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object of the contract, with its place."""
    if isinstance(node, dict):
        yield place, node
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield from walk(value, f"{place}/{key}")


def errors_of(value: Any, schema: dict[str, Any]) -> list[str]:
    """What is wrong with a value, by a schema of the contract."""
    validator = jsonschema_rs.Draft202012Validator({**schema, "components": CONTRACT["components"]})
    return [error.message for error in validator.iter_errors(value)]


def body_of(name: str, kind: str) -> dict[str, Any]:
    """The schema of an operation's body."""
    reference = OPERATIONS[name]["requestBody"]["content"][kind]["schema"]["$ref"]
    return SCHEMAS[reference.rpartition("/")[2]]
