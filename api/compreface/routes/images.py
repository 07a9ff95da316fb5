"""The images of faces: crops, where the collection stores them, and nothing where it does not."""

from fastapi import Request, Response

from sameface.api.access.caller import refuse_without
from sameface.api.compreface.access import SEARCH, Collection, find_collection, find_service
from sameface.api.compreface.router import PREFIX, SlashRouter
from sameface.api.dependencies import Gallery
from sameface.api.request_context import context_of
from sameface.model.gallery import subjects

router = SlashRouter(prefix=f"{PREFIX}/recognition/faces")
static_images = SlashRouter(prefix=f"{PREFIX}/static")


@router.get("/{image_id}/img", dependencies=[SEARCH])
async def get_image(image_id: str, collection: Collection, gallery: Gallery) -> Response:
    """The crop of a face as PNG; an empty body if there is none."""
    return show(await gallery.readers.run(subjects.find_crop, gallery, collection, image_id))


@static_images.get("/{api_key}/images/{image_id}")
async def get_static_image(api_key: str, image_id: str, request: Request, gallery: Gallery) -> Response:
    """The same for a page, which can send no header: whoever sees the address has the key."""
    context = context_of(request.scope)
    context.caller = key = await find_service(api_key, request.app.state.keys)
    refuse_without(key, "search")
    async with request.app.state.door.admitted(context):
        collection = await find_collection(request, key)
        return show(await gallery.readers.run(subjects.find_crop, gallery, collection, image_id))


def show(crop: bytes) -> Response:
    """The response with an image, which nobody on the way may keep: its person can be forgotten."""
    return Response(crop, media_type="application/octet-stream", headers={"Cache-Control": "no-store"})
