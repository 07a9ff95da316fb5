"""Authenticates a request by its API key, and checks that the key has the scope of the route."""

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from sameface.api.access.keys import find_key
from sameface.api.errors import Forbidden, Unauthorized
from sameface.api.middleware.request_context import context_of
from sameface.api.settings import Settings

bearer = HTTPBearer(auto_error=False, description="Needed only where the server has API keys.")


def require_scope(scope: str | None) -> Callable[..., Awaitable[None]]:
    """A FastAPI dependency: the request's key must have `scope`, unless the server has no keys.

    None takes any valid key.
    """

    async def check(
        request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]
    ) -> None:
        settings: Settings = request.app.state.settings
        if not settings.api_keys:
            return
        key = find_key(settings.api_keys, credentials.credentials) if credentials else None
        if key is None:
            raise Unauthorized("Send `Authorization: Bearer` with one of the server's API keys.")
        if scope and scope not in key.scopes:
            raise Forbidden(f"This needs a key with the scope {scope!r}.")
        context_of(request.scope).caller = key

    return check


ANY_KEY = Depends(require_scope(None))
READ = Depends(require_scope("read"))
WRITE = Depends(require_scope("write"))
