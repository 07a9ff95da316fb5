"""FastAPI dependencies of the routes: the loaded pipeline, room in its queue, the gallery, a collection.

Every dependency is `async`, although few await anything: FastAPI runs a plain function in a thread. None
depends on another: FastAPI walks through a nested dependency once for every dependency that contains it. Each
costs a request some 20 microseconds, so that the routes which are called most call `loaded` themselves.
"""

from typing import Annotated

from fastapi import Depends, Header, Path, Request

from sameface.api.errors import InvalidRequest, NotReady
from sameface.api.request_context import context_of
from sameface.model.gallery.gallery import Gallery as OpenGallery
from sameface.model.pipeline import Pipeline as LoadedPipeline
from sameface.model.store.records import ID_LENGTH, ID_PATTERN
from sameface.model.store.records import Collection as StoredCollection

Id = Annotated[str, Path(pattern=ID_PATTERN, max_length=ID_LENGTH)]
CollectionName = Annotated[
    str, Path(pattern=ID_PATTERN, max_length=ID_LENGTH, json_schema_extra={"example": "staff"})
]


def loaded(request: Request) -> tuple[LoadedPipeline, OpenGallery]:
    """The pipeline and the gallery; raises NotReady until they are loaded."""
    state = request.app.state
    if state.pipeline is None:
        failed = state.failure is not None
        why = "could not be loaded: see the server's log" if failed else "are still being loaded"
        raise NotReady(f"The networks {why}.", retry_after_seconds=2)
    return state.pipeline, state.gallery


async def get_pipeline(request: Request) -> LoadedPipeline:
    """The loaded pipeline."""
    return loaded(request)[0]


async def require_room(request: Request) -> None:
    """Refuse a request before its upload if the queue is full, or if its caller may send no photo now."""
    loaded(request)[0].queue.check_room()
    may_have_none = "collection" in request.path_params and "json" in request.headers.get("content-type", "")
    if not may_have_none:  # where people are enrolled and searched, JSON may hold embeddings instead
        context_of(request.scope).allowance.check_photos()


async def refuse_unknown_options(request: Request) -> None:
    """Refuse parameters in the address that the route does not have: ignored, they would decide nothing."""
    if not request.query_params:
        return
    operation = request.app.openapi()["paths"][request.scope["route"].path][request.method.lower()]
    known = [option["name"] for option in operation.get("parameters", ()) if option["in"] == "query"]
    unknown = [name for name in request.query_params if name not in known]
    if unknown:
        elsewhere = "options are fields of the form or of the JSON" if "requestBody" in operation else ""
        here = f"the address takes {', '.join(known)}" if known else elsewhere or "the address takes none"
        raise InvalidRequest(
            f"Unknown parameters in the address, {', '.join(unknown[:5])}: {here}.",
            errors=[
                {"field": f"query.{name}"[:100], "problem": "is not known here"} for name in unknown[:20]
            ],
        )


async def get_gallery(request: Request) -> OpenGallery:
    """The loaded gallery, with the people of all collections."""
    return loaded(request)[1]


async def get_collection(collection: CollectionName, request: Request) -> StoredCollection:
    """The collection named in the request's path."""
    _, gallery = loaded(request)
    return await gallery.readers.run(gallery.get_collection, collection)


Pipeline = Annotated[LoadedPipeline, Depends(get_pipeline)]
Gallery = Annotated[OpenGallery, Depends(get_gallery)]
Collection = Annotated[StoredCollection, Depends(get_collection)]
IdempotencyKey = Annotated[str | None, Header(max_length=255)]

ROOM = Depends(require_room)
KNOWN_OPTIONS = Depends(refuse_unknown_options)
