"""Who calls: the key of a request is a UUID, and selects the service and the collection."""

import uuid
from typing import Annotated

from fastapi import Depends, Request
from starlette.datastructures import Headers
from starlette.types import Scope

from sameface.api.access.caller import find_key, refuse_without
from sameface.api.compreface.errors import KeyMissing, KeyNotUuid
from sameface.api.dependencies import loaded
from sameface.api.errors import NotReady, Unauthorized
from sameface.api.request_context import context_of
from sameface.model.access.key_ring import KeyRing
from sameface.model.access.keys import COMPREFACE_SERVICES
from sameface.model.actor import name_route
from sameface.model.store.access.api_key import ApiKey
from sameface.model.store.records import Collection as StoredCollection


async def authenticate(scope: Scope, ring: KeyRing) -> None:
    """Find the key of a request and put it into the request's context; on loopback too, there must be one."""
    secret = Headers(scope=scope).get("x-api-key")
    if not secret:
        raise KeyMissing("Missing header: x-api-key")
    context = context_of(scope)
    context.caller = await find_service(secret, ring)
    context.admitted = True


async def find_service(secret: str, ring: KeyRing) -> ApiKey:
    """The key of CompreFace with this secret."""
    if not ring.is_open:
        raise NotReady("The server is still starting.", retry_after_seconds=2)
    await ring.refresh()
    try:
        key = find_key(str(uuid.UUID(secret)), ring)
    except ValueError:
        raise KeyNotUuid("Service API key should be UUID") from None
    if key.service not in COMPREFACE_SERVICES.values():
        raise Unauthorized("This key is for the routes under /v1 alone.")
    return key


class RequireService:
    """A FastAPI dependency: the caller's key must be for `service` and have `scope`."""

    def __init__(self, service: str, scope: str) -> None:
        self.service = service
        self.scope = scope

    async def __call__(self, request: Request) -> None:
        """Let the request go on, or raise."""
        name_route(request.scope["route"].path)
        context = context_of(request.scope)
        if context.refusal:
            raise context.refusal
        key = context.caller
        if key is None or key.service != COMPREFACE_SERVICES[self.service]:
            raise Unauthorized(f"{self.service.capitalize()} service with this API key not found")
        refuse_without(key, self.scope)


async def get_collection(request: Request) -> StoredCollection:
    """The collection that the caller's key is bound to."""
    key = context_of(request.scope).caller
    assert key
    return await find_collection(request, key)


async def find_collection(request: Request, key: ApiKey) -> StoredCollection:
    """The collection that `key` is bound to."""
    _, gallery = loaded(request)
    [name] = key.collections or ()
    return await gallery.readers.run(gallery.get_collection, name)


Collection = Annotated[StoredCollection, Depends(get_collection)]

SEARCH = Depends(RequireService("recognition", "search"))
WRITE = Depends(RequireService("recognition", "write"))
DETECT = Depends(RequireService("detection", "read"))
VERIFY = Depends(RequireService("verification", "read"))
