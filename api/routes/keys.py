"""API keys: make, look up, rotate, revoke."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from sameface.api.access.caller import ADMIN, ANY_KEY, Caller
from sameface.api.body.read_body import body_of
from sameface.api.dependencies import Gallery, Id
from sameface.api.openapi import examples, links
from sameface.api.openapi.bodies import document_body
from sameface.api.openapi.responses import BODY_PROBLEMS, KEY_PROBLEMS, STORE_PROBLEMS, responses
from sameface.api.schemas.keys import KeyList, KeyRequest, KeyResponse, KeyWithSecret, RotateRequest
from sameface.model.access.key_desk import KeyDesk
from sameface.model.access.key_ring import KeyRing
from sameface.model.access.keys import ANYBODY, draw_secret

router = APIRouter(prefix="/v1/keys", tags=["keys"])

SECRET = {"Cache-Control": "no-store"}


async def get_desk(gallery: Gallery, caller: Caller) -> KeyDesk:
    """The keys that the caller may manage."""
    return KeyDesk(gallery.store, caller)


async def get_ring(request: Request) -> KeyRing:
    """The keys that this process takes, to be told when it changes some itself."""
    ring: KeyRing = request.app.state.keys
    return ring


Desk = Annotated[KeyDesk, Depends(get_desk)]
Ring = Annotated[KeyRing, Depends(get_ring)]


@router.post(
    "",
    status_code=201,
    dependencies=[ADMIN],
    openapi_extra=document_body(KeyRequest, examples.KEY_REQUEST),
    responses=responses(
        examples.NEW_KEY, *BODY_PROBLEMS, *STORE_PROBLEMS, "storage_full", success=201, links=links.KEY
    ),
)
async def create_key(
    body: Annotated[KeyRequest, Depends(body_of(KeyRequest))],
    desk: Desk,
    ring: Ring,
    gallery: Gallery,
    response: Response,
) -> KeyWithSecret:
    """Make a key within the scopes and collections of your own; its secret is shown this once."""
    secret = draw_secret()
    key = await gallery.writers.run(desk.add, body.to_key(secret))
    ring.expect_change()
    response.headers.update(SECRET)
    return KeyWithSecret.from_key(key, secret=secret)


@router.get("", dependencies=[ADMIN], responses=responses(examples.KEYS, *KEY_PROBLEMS, *STORE_PROBLEMS))
async def list_keys(
    desk: Desk,
    gallery: Gallery,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    cursor: Annotated[str, Query(max_length=128)] = "",
) -> KeyList:
    """List the keys that yours may manage, by id; those of the server's environment are not among them."""
    return KeyList.from_keys(await gallery.readers.run(desk.page, limit, cursor), limit)


@router.get("/self", dependencies=[ANY_KEY], responses=responses(examples.KEY, *KEY_PROBLEMS))
async def get_self(caller: Caller) -> KeyResponse:
    """Say what the caller may do; without keys, anybody may do everything."""
    return KeyResponse.from_key(caller or ANYBODY)


@router.get(
    "/{key_id}",
    dependencies=[ADMIN],
    responses=responses(examples.KEY, *KEY_PROBLEMS, *STORE_PROBLEMS, "key_not_found"),
)
async def get_key(key_id: Id, desk: Desk, gallery: Gallery) -> KeyResponse:
    """Look a key up."""
    return KeyResponse.from_key(await gallery.readers.run(desk.get, key_id))


@router.post(
    "/{key_id}/rotate",
    dependencies=[ADMIN],
    openapi_extra=document_body(RotateRequest, {"grace_seconds": 3600}, required=False),
    responses=responses(
        examples.ROTATED_KEY, *BODY_PROBLEMS, *STORE_PROBLEMS, "key_not_found", "storage_full"
    ),
)
async def rotate_key(
    key_id: Id,
    body: Annotated[RotateRequest, Depends(body_of(RotateRequest))],
    desk: Desk,
    ring: Ring,
    gallery: Gallery,
    response: Response,
) -> KeyWithSecret:
    """Give a key a new secret, which is shown this once; the old one works for `grace_seconds` more."""
    key, secret = await gallery.writers.run(desk.rotate, key_id, body.grace_seconds)
    ring.expect_change()
    response.headers.update(SECRET)
    return KeyWithSecret.from_key(key, secret=secret)


@router.delete(
    "/{key_id}",
    status_code=204,
    dependencies=[ADMIN],
    response_class=Response,  # without a content type, as there is no content
    responses=responses(None, *KEY_PROBLEMS, *STORE_PROBLEMS, "key_not_found", "storage_full", success=204),
)
async def revoke_key(key_id: Id, desk: Desk, ring: Ring, gallery: Gallery) -> None:
    """Revoke a key: every worker refuses it within a second, and this one at once."""
    await gallery.writers.run(desk.revoke, key_id)
    ring.expect_change()
