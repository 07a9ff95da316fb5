"""A router whose every path works with a slash at its end too, as CompreFace's do."""

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter

PREFIX = "/api/v1"  # of every router by itself: metrics and the audit name a route by its own path


class SlashRouter(APIRouter):
    """Adds each route twice, and none of them to openapi.json."""

    def add_api_route(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        """Add a route for `path`, and for `path` with a slash."""
        for each in (path, f"{path}/"):
            super().add_api_route(each, endpoint, **options | {"include_in_schema": False})
