"""Operations share the path `/`: the header `X-Amz-Target` says which one is meant."""

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette.datastructures import Headers
from starlette.routing import Match
from starlette.types import Scope

from sameface.api.rekognition.errors import AwsJson

SERVICE = "RekognitionService"


class OperationRoute(APIRoute):
    """The route of the operation that its endpoint is named after: `list_faces` answers `ListFaces`."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        self.operation = "".join(word.capitalize() for word in endpoint.__name__.split("_"))
        self.label = f"/{SERVICE}.{self.operation}"  # what metrics, logs and the audit call it

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Whether a request is for this operation."""
        match, found = super().matches(scope)
        if match is Match.FULL and Headers(scope=scope).get("x-amz-target") != self.label[1:]:
            return Match.NONE, {}
        return match, found


class OperationRouter(APIRouter):
    """A router for Rekognition's operations, which are left out of openapi.json."""

    def __init__(self) -> None:
        super().__init__(route_class=OperationRoute, include_in_schema=False, default_response_class=AwsJson)
