"""Who calls: the request is signed with a key of the store that was made for it."""

import hmac
import time
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

from fastapi import Request, Response
from starlette.datastructures import Headers

from sameface.api.access.caller import refuse_unseen, refuse_without
from sameface.api.access.reserve import take_photos
from sameface.api.body.read_body import (
    BASE64_GROWTH,
    collect_json,
    count_photos,
    find_photos,
    parse_soon,
)
from sameface.api.errors import NotReady, Unauthorized
from sameface.api.rekognition.bodies import Body
from sameface.api.rekognition.errors import SignatureWrong
from sameface.api.rekognition.signature import Signature, SignedRequest, read_signature, sign
from sameface.api.request_context import context_of, find_path
from sameface.model.access.key_ring import KeyRing
from sameface.model.access.keys import REKOGNITION, find_fault, hash_secret
from sameface.model.actor import name_route
from sameface.model.store.access.api_key import ApiKey

FRESH_SECONDS = 15 * 60  # that a signature may be old, or a clock be wrong
MAX_JSON_BYTES = 300_000  # beside photos: the ids of 4,096 faces, and more

Asked = TypeVar("Asked", bound=Body)


def signed(schema: type[Asked], scope: str) -> Callable[[Request, Response], AsyncIterator[Asked]]:
    """A FastAPI dependency: the body as `schema`, once signature, limits, scope and collection are checked.

    What can be refused by the headers alone is refused before the body is read.
    """
    photos = find_photos(schema)

    async def admit(request: Request, response: Response) -> AsyncIterator[Asked]:
        context, settings = context_of(request.scope), request.app.state.settings
        response.headers["x-amzn-RequestId"] = context.request_id
        signature = read_signature(request.headers)
        key, secrets = await find_signer(request.app.state.keys, signature)
        limit = int(len(photos) * settings.max_image_bytes * BASE64_GROWTH) + MAX_JSON_BYTES
        body = await collect_json(request, limit)
        refuse_forgery(key, secrets, signature, describe_request(request, body))
        context.caller = key
        request.app.state.keys.note_use(key)
        async with request.app.state.door.admitted(context):
            name_route(request.scope["route"].label)
            refuse_without(key, scope)
            asked = await parse_soon(body, schema)
            if asked.collection_id is not None:
                refuse_unseen(key, asked.collection_id)
            await take_photos(context.allowance, count_photos(asked, photos))
            del body
            yield asked

    return admit


async def find_signer(ring: KeyRing, signature: Signature) -> tuple[ApiKey, tuple[str, ...]]:
    """The key that a request names, and its secrets; raises if it may not sign, or did so too long ago."""
    if not ring.is_open:
        raise NotReady("The server is still starting.", retry_after_seconds=2)
    await ring.refresh()
    key, secrets = ring.find_signer(signature.key_id)
    if key is None or key.service != REKOGNITION:
        raise Unauthorized("There is no such access key: `sameface keys create --aws` makes one.")
    if abs(time.time() - signature.seconds) > FRESH_SECONDS:
        raise SignatureWrong(
            f"The request was signed at {signature.time}, more than {FRESH_SECONDS // 60} minutes from the"
            " time here: sign it again, and set the clock."
        )
    return key, secrets


def describe_request(request: Request, body: bytearray) -> SignedRequest:
    """The parts of a request that are signed, with the path that the client knows."""
    scope = request.scope
    path = scope.get("root_path", "") + find_path(scope)
    return SignedRequest(path, request.url.query, join_headers(request.headers), body)


def join_headers(headers: Headers) -> dict[str, str]:
    """The headers by name; values of one name are joined by commas, as they are signed."""
    return {name: ",".join(headers.getlist(name)) for name in headers}


def refuse_forgery(
    key: ApiKey, secrets: tuple[str, ...], signature: Signature, request: SignedRequest
) -> None:
    """Raise unless `request` was signed with one of `secrets` that `key` still takes."""
    for secret in secrets:
        if hmac.compare_digest(sign(secret, signature, request).encode(), signature.value.encode()):
            if fault := find_fault(key, hash_secret(secret), time.time()):
                raise Unauthorized(f"{fault} Sign with one that is valid.")
            return
    raise SignatureWrong("The signature does not fit: the secret is another, or the request was altered.")
