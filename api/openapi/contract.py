"""The contract that the server publishes: what FastAPI infers from the routes, made exact."""

from functools import cache
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute

from sameface.api.openapi.examples import restore
from sameface.api.openapi.schemas import gather_schemas, without_null


def name_operation(route: APIRoute) -> str:
    """The operation id of a route: its function's name, which generated clients take for a method's."""
    return route.name


def publish_exactly(app: FastAPI) -> None:
    """Let `app` publish its contract with what FastAPI cannot infer."""
    infer = app.openapi
    app.openapi = cache(lambda: complete(infer()))  # type: ignore[method-assign]


def complete(inferred: dict[str, Any]) -> dict[str, Any]:
    """The contract with every schema among its components, whole examples, and null where it can be sent."""
    contract = gather_schemas(inferred)
    for operations in contract["paths"].values():
        for operation in operations.values():
            for parameter in operation.get("parameters", []):
                parameter["schema"] = without_null(parameter["schema"])
            for place in (operation.get("requestBody", {}), *operation["responses"].values()):
                restore(place.get("content", {}))
    return contract
