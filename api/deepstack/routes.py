"""DeepStack's three face routes: recognize, register, delete.

The key is a key of the store for one collection, in the form's field `api_key` or in a header; its scopes say
what it may do. Errors are `{"success": false, "error": ...}`.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from sameface.api.access.caller import find_key, read_secret, refuse_without
from sameface.api.access.reserve import take_photos
from sameface.api.body.read_body import body_of
from sameface.api.dependencies import ROOM, Gallery, Pipeline, loaded
from sameface.api.errors import NotReady, Unauthorized
from sameface.api.request_context import context_of
from sameface.api.schemas.fields import Name, Photo
from sameface.model.access.key_ring import KeyRing
from sameface.model.actor import name_route
from sameface.model.decision.confidence import measure_confidence
from sameface.model.decision.thresholds import EXTRAPOLATING
from sameface.model.enroll import EnrollRequest, enroll
from sameface.model.errors import SamefaceError
from sameface.model.gallery import subjects
from sameface.model.gallery.candidates import Candidate
from sameface.model.gallery.identified import IdentifiedFace
from sameface.model.identify import IdentifyRequest, identify
from sameface.model.store.access.api_key import ANYTHING, ApiKey
from sameface.model.store.records import Collection

router = APIRouter(prefix="/v1/vision/face", include_in_schema=False)

AT_TARGET = 0.67  # DeepStack's own `min_confidence`
UNKNOWN = "unknown"
STATUSES = {409: 400, 415: 400, 422: 400}  # what DeepStack's clients know nothing of


class WithKey(BaseModel):
    """The key of a form."""

    api_key: str = ""


class RecognizeBody(WithKey):
    """Who is this?"""

    image: Photo
    min_confidence: float = Field(AT_TARGET, ge=0, le=1)


class RegisterBody(WithKey):
    """A photo of somebody."""

    image: Photo
    userid: Name = Field(min_length=1)


class DeleteBody(WithKey):
    """Somebody to forget."""

    userid: Name = Field(min_length=1)


@router.post("/recognize", dependencies=[ROOM])
async def recognize(
    request: Request,
    body: Annotated[RecognizeBody, Depends(body_of(RecognizeBody))],
    pipeline: Pipeline,
    gallery: Gallery,
) -> dict[str, Any]:
    """Say for every face of a photo who it is."""
    async with admitted(request, body, "search") as collection:
        threshold = gallery.choose_threshold(collection, EXTRAPOLATING)
        asked = IdentifyRequest(collection=collection, probe=body.image, limit=1)
        found = await identify(pipeline, gallery, asked)
        predictions = []
        for face in found.results:
            best = face.candidates[0] if face.candidates else None
            confidence = measure_confidence(threshold, best.similarity, AT_TARGET) if best else 0.0
            known = best if confidence >= body.min_confidence else None
            predictions.append(describe_prediction(face, known, confidence))
    return {"success": True, "predictions": predictions}


@router.post("/register", dependencies=[ROOM])
async def register(
    request: Request,
    body: Annotated[RegisterBody, Depends(body_of(RegisterBody))],
    pipeline: Pipeline,
    gallery: Gallery,
) -> dict[str, Any]:
    """Add a face to somebody, who is added if nobody is called so."""
    async with admitted(request, body, "write") as collection:
        person_id = await gallery.readers.run(subjects.choose_person_id, gallery, collection, body.userid)
        enrolment = EnrollRequest(
            collection=collection,
            person_id=person_id,
            name=body.userid,
            photos=[body.image],
            may_exist=True,
        )
        await enroll(pipeline, gallery, enrolment)
    return {"success": True, "message": "face added"}


@router.post("/delete")
async def delete(
    request: Request, body: Annotated[DeleteBody, Depends(body_of(DeleteBody))], gallery: Gallery
) -> dict[str, Any]:
    """Forget somebody."""
    async with admitted(request, body, "write") as collection:
        await gallery.writers.run(subjects.forget_subject, gallery, collection, body.userid)
    return {"success": True}


@asynccontextmanager
async def admitted(request: Request, body: WithKey, scope: str) -> AsyncIterator[Collection]:
    """Yield the collection of the caller's key; the block counts as a request of that key."""
    context = context_of(request.scope)
    context.caller = key = await find_caller(request, body.api_key)
    refuse_without(key, scope)
    _, gallery = loaded(request)
    [name] = key.collections or ()
    async with request.app.state.door.admitted(context):
        name_route(request.scope["route"].path)
        await take_photos(context.allowance, int("image" in type(body).model_fields))
        yield await gallery.readers.run(gallery.get_collection, name)


async def find_caller(request: Request, api_key: str) -> ApiKey:
    """The key in the form or in the headers, which must be for one collection: the one that is meant."""
    ring: KeyRing = request.app.state.keys
    if not ring.is_open:
        raise NotReady("The server is still starting.", retry_after_seconds=2)
    await ring.refresh()
    secret = api_key or read_secret(request.headers)
    if not secret:
        raise Unauthorized("Incorrect api key: send one in the field api_key.")
    key = find_key(secret, ring)
    places = key.collections or ()
    if key.service or len(places) != 1 or places[0].endswith(ANYTHING):
        raise Unauthorized("Incorrect api key: it must be for one collection, and for no other service.")
    return key


def describe_prediction(face: IdentifiedFace, known: Candidate | None, confidence: float) -> dict[str, Any]:
    """Who a face is, and where."""
    assert face.face
    box = face.face.box
    return {
        "userid": (known.name or known.person_id) if known else UNKNOWN,
        "confidence": round(confidence, 5) if known else 0,
        "x_min": round(box.left),
        "y_min": round(box.top),
        "x_max": round(box.left + box.width),
        "y_max": round(box.top + box.height),
    }


def write_error(_: SamefaceError, problem: dict[str, Any]) -> JSONResponse:
    """The response for an error, which `problem` describes."""
    status = STATUSES.get(problem["status"], problem["status"])
    return JSONResponse({"success": False, "error": problem["detail"]}, status)
