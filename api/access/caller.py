"""Who calls: the key of a request, its scopes, and the collections that it may touch."""

import time
from typing import Annotated

from fastapi import Depends, Request
from fastapi.openapi.models import HTTPBearer
from fastapi.security.base import SecurityBase
from starlette.datastructures import Headers
from starlette.types import Scope

from sameface.api.errors import NotReady, Unauthorized
from sameface.api.request_context import context_of
from sameface.model.access.key_ring import KeyRing
from sameface.model.access.keys import find_fault, hash_secret
from sameface.model.actor import name_route
from sameface.model.errors import CollectionNotFound, Forbidden
from sameface.model.store.access.api_key import ApiKey

KEY_HEADERS = ("x-api-key", "api-key")  # beside Authorization: Bearer


async def authenticate(scope: Scope, ring: KeyRing) -> None:
    """Put the key of a request into the request's context; on a server without keys, none is needed."""
    if not ring.is_open:
        raise NotReady("The server is still starting.", retry_after_seconds=2)
    await ring.refresh()
    context = context_of(scope)
    context.caller = find_caller(Headers(scope=scope), ring) if ring.guarded else None
    context.admitted = True


def find_caller(headers: Headers, ring: KeyRing) -> ApiKey:
    """The key that a request carries; raises Unauthorized if none is valid for the routes under /v1."""
    secret = read_secret(headers)
    if secret is None:
        raise Unauthorized("Send `Authorization: Bearer`, or `X-Api-Key`, with one of the server's API keys.")
    key = find_key(secret, ring)
    if key.service:
        raise Unauthorized(f"This key is for {key.service} alone: make another for the routes under /v1.")
    return key


def find_key(secret: str, ring: KeyRing) -> ApiKey:
    """The key with this secret, of any service; raises Unauthorized if it is unknown or no longer valid."""
    sha256 = hash_secret(secret)
    key = ring.find(sha256)
    fault = find_fault(key, sha256, time.time()) if key else "The server does not know this key."
    if key is None or fault:
        raise Unauthorized(f"{fault} Send one that is valid.")
    return key


def read_secret(headers: Headers) -> str | None:
    """The secret in the headers of a request, None if there is none."""
    kind, _, secret = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer" and secret:
        return secret.strip()
    return next((headers[name] for name in KEY_HEADERS if headers.get(name)), None)


async def require_admission(request: Request) -> None:
    """The first FastAPI dependency: raise the error with which `Admission` has refused the request."""
    if refusal := context_of(request.scope).refusal:
        raise refusal


class RequireScope(SecurityBase):
    """A FastAPI dependency: the caller needs one of `scopes`, or any key if none is named.

    The scope is checked first: a caller without it does not learn whether the collection exists.
    """

    def __init__(self, *scopes: str) -> None:
        self.scopes = scopes
        self.model = HTTPBearer(description="Needed only where the server has API keys.")
        self.scheme_name = "HTTPBearer"

    async def __call__(self, request: Request) -> None:
        """Let the request go on, or raise."""
        name_route(request.scope["route"].path)
        context = context_of(request.scope)
        if not context.admitted:  # a page outside of /v1 that needs a key
            await authenticate(request.scope, request.app.state.keys)
        if self.scopes:
            refuse_without(context.caller, *self.scopes)
        if "collection" in request.path_params:
            refuse_unseen(context.caller, request.path_params["collection"])


def refuse_without(key: ApiKey | None, *scopes: str) -> None:
    """Raise if the caller's key has none of `scopes`; without keys, everybody may do everything."""
    if key and key.scopes.isdisjoint(scopes):
        named = " or ".join(repr(scope) for scope in scopes)
        raise Forbidden(f"This needs a key with the scope {named}.")


def refuse_unseen(key: ApiKey | None, collection: str) -> None:
    """Raise if the caller's key may not touch `collection`, as if it did not exist."""
    if key and not key.may_touch(collection):
        raise CollectionNotFound(f"There is no collection {collection!r}.")


def refuse_unnamed(key: ApiKey | None, collection: str | None) -> None:
    """Raise if `key` is limited to collections, and `collection` is None or none of them."""
    if key and key.collections is not None and collection is None:
        raise Forbidden("This key is for some collections: name one of them.")
    if collection is not None:
        refuse_unseen(key, collection)


async def get_caller(request: Request) -> ApiKey | None:
    """The key of the caller; None where the server has no keys."""
    return context_of(request.scope).caller


Caller = Annotated[ApiKey | None, Depends(get_caller)]

ADMITTED = Depends(require_admission)
ANY_KEY = Depends(RequireScope())
READ = Depends(RequireScope("read"))
READ_OR_SEARCH = Depends(RequireScope("read", "search"))
SEARCH = Depends(RequireScope("search"))
WRITE = Depends(RequireScope("write"))
ADMIN = Depends(RequireScope("admin"))
