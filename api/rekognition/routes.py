"""All operations of Rekognition that are answered here."""

from fastapi import APIRouter

from sameface.api.rekognition.operations import collections, detect, faces, search, users

router = APIRouter()
for part in (collections, detect, faces, search, users):
    router.include_router(part.router)
