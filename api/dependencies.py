"""What routes ask for: a loaded pipeline with room in its queue, and a key with the right scope.

All of them are `async`, although few wait: FastAPI would send a plain function to another thread. And none of
them depends on another: FastAPI works through what is nested once for every place that it is nested in.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Header, Path, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from sameface.api.access.keys import find_key
from sameface.api.errors import Forbidden, NotReady, Unauthorized
from sameface.api.settings import Settings
from sameface.model.enroll import Registrar as OpenRegistrar
from sameface.model.gallery.gallery import Gallery as OpenGallery
from sameface.model.pipeline import Pipeline as LoadedPipeline
from sameface.model.store.records import Collection as StoredCollection

Id = Annotated[str, Path(pattern=r"^[A-Za-z0-9._~-]{1,128}$")]
bearer = HTTPBearer(auto_error=False, description="Needed only where the server has API keys.")


def require_scope(scope: str) -> Callable[..., Awaitable[None]]:
    """A dependency that lets a request pass if its key has the scope, or if the server has no keys."""

    async def check(
        request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]
    ) -> None:
        settings: Settings = request.app.state.settings
        if not settings.api_keys:
            return
        key = find_key(settings.api_keys, credentials.credentials) if credentials else None
        if key is None:
            raise Unauthorized("Send `Authorization: Bearer` with one of the server's API keys.")
        if scope not in key.scopes:
            raise Forbidden(f"This needs a key with the scope {scope!r}.")

    return check


def loaded(request: Request) -> tuple[LoadedPipeline, OpenGallery]:
    """Pipeline and gallery once they are loaded."""
    state = request.app.state
    if state.pipeline is None:
        failed = state.failure is not None
        why = "could not be loaded: see the server's log" if failed else "are still being loaded"
        raise NotReady(f"The networks {why}.", retry_after_seconds=2)
    return state.pipeline, state.gallery


async def get_pipeline(request: Request) -> LoadedPipeline:
    """Who works on photos."""
    return loaded(request)[0]


async def require_room(request: Request) -> None:
    """Refuse before the upload what would be refused after it."""
    loaded(request)[0].workers.check_room()


async def get_gallery(request: Request) -> OpenGallery:
    """Who is enrolled."""
    return loaded(request)[1]


async def get_registrar(request: Request) -> OpenRegistrar:
    """Who enrols people."""
    return OpenRegistrar(*loaded(request))


async def get_collection(collection: Id, request: Request) -> StoredCollection:
    """The collection that the address names."""
    _, gallery = loaded(request)
    return await asyncio.to_thread(gallery.get_collection, collection)


Pipeline = Annotated[LoadedPipeline, Depends(get_pipeline)]
Gallery = Annotated[OpenGallery, Depends(get_gallery)]
Registrar = Annotated[OpenRegistrar, Depends(get_registrar)]
Collection = Annotated[StoredCollection, Depends(get_collection)]
IdempotencyKey = Annotated[str | None, Header(max_length=255)]

READ = Depends(require_scope("read"))
ROOM = Depends(require_room)
WRITE = Depends(require_scope("write"))
