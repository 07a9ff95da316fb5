"""All routes of CompreFace, in the order in which a path finds its own."""

from fastapi import APIRouter

from sameface.api.compreface.routes import faces, images, recognize, services, subjects

router = APIRouter()
for part in (subjects, faces, images, recognize, services):
    router.include_router(part.router)
