"""Other servers whose clients are served too: each family has its routes, its keys and its errors."""

from dataclasses import dataclass

from fastapi import APIRouter

from sameface.api.access.admission import Authenticate
from sameface.api.compreface import access, errors, routes
from sameface.api.compreface.router import PREFIX
from sameface.api.deepstack import routes as deepstack
from sameface.api.errors import Dialect
from sameface.api.rekognition import errors as rekognition_errors
from sameface.api.rekognition import routes as rekognition


@dataclass(frozen=True, slots=True)
class Family:
    """The routes under a prefix, or at the path `/`, who may call them, and how they write errors."""

    prefix: str
    router: APIRouter
    authenticate: Authenticate | None  # None: the routes themselves, because it takes the body
    write_error: Dialect


FAMILIES = {
    "compreface": Family(f"{PREFIX}/", routes.router, access.authenticate, errors.write_error),
    "deepstack": Family("/v1/vision/", deepstack.router, None, deepstack.write_error),
    "rekognition": Family("/", rekognition.router, None, rekognition_errors.write_error),
}
