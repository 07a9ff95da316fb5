"""The contract that the server publishes: what FastAPI infers from the routes, made exact."""

from functools import cache
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute

from sameface.api.openapi.examples import restore
from sameface.api.openapi.schemas import gather_schemas, without_null

# Read by the middleware, of which FastAPI knows nothing.
REQUEST_ID: dict[str, Any] = {
    "name": "X-Request-ID",
    "in": "header",
    "required": False,
    "description": "An id of yours, 1 to 128 of `A-Z a-z 0-9 . _ ~ -`: answer and log have it.",
    "schema": {"type": "string", "title": "X-Request-Id"},
}


# Either of them is a key; a server without keys needs none. The middleware reads them.
KEY_SCHEMES: dict[str, Any] = {
    "HTTPBearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "Needed only where the server has API keys.",
    },
    "XApiKey": {"type": "apiKey", "in": "header", "name": "X-Api-Key", "description": "The same key."},
    "ApiKey": {"type": "apiKey", "in": "header", "name": "Api-Key", "description": "The same key."},
}


def name_operation(route: APIRoute) -> str:
    """The operation id of a route: its function's name, which generated clients take for a method's."""
    return route.name


def publish_exactly(app: FastAPI) -> None:
    """Let `app` publish its contract with what FastAPI cannot infer."""
    infer = app.openapi
    app.openapi = cache(lambda: complete(infer()))  # type: ignore[method-assign]


def complete(inferred: dict[str, Any]) -> dict[str, Any]:
    """The contract with what FastAPI leaves out, and without null where null cannot be sent."""
    contract = gather_schemas(inferred)
    contract["components"]["securitySchemes"] = KEY_SCHEMES
    for path, operations in contract["paths"].items():
        for operation in operations.values():
            if "security" in operation:
                operation["security"] = [{scheme: []} for scheme in KEY_SCHEMES]
            parameters = [*sort_by_place(operation.get("parameters", []), path), REQUEST_ID]
            operation["parameters"] = [
                {**parameter, "schema": without_null(parameter["schema"])} for parameter in parameters
            ]
            for place in (operation.get("requestBody", {}), *operation["responses"].values()):
                restore(place.get("content", {}))
    return contract


def sort_by_place(parameters: list[dict[str, Any]], path: str) -> list[dict[str, Any]]:
    """Path parameters in the order of the path, then the others: generated methods take them by position."""
    in_path = [parameter for parameter in parameters if parameter["in"] == "path"]
    others = [parameter for parameter in parameters if parameter["in"] != "path"]
    return sorted(in_path, key=lambda parameter: path.index(f"{{{parameter['name']}}}")) + others
