"""The page to try the server out: Swagger UI, whose files the server has itself."""

from pathlib import Path

import fastapi_swagger
from fastapi import APIRouter, Request
from starlette.responses import FileResponse, RedirectResponse

from sameface.api.errors import NotFound

PAGE = Path(__file__).parents[1] / "openapi" / "page.html"
RESOURCES = Path(fastapi_swagger.__file__).parent / "resources"  # no CDN learns who opens the page
FILES = ("swagger-ui-bundle.js", "swagger-ui.css", "favicon-32x32.png")

router = APIRouter(include_in_schema=False)


@router.get("/docs")
async def docs() -> FileResponse:
    """The page."""
    return FileResponse(PAGE)


@router.get("/swagger/{name}")
async def swagger(name: str) -> FileResponse:
    """A file of the page."""
    if name not in FILES:
        raise NotFound(f"The page has no {name!r}.")
    return FileResponse(RESOURCES / name)


@router.get("/")
async def go_to_docs(request: Request) -> RedirectResponse:
    """Go from the root to the page; by a relative address if no prefix is set, since a proxy may have one."""
    prefix = request.scope["root_path"]
    return RedirectResponse(f"{prefix}/docs" if prefix else "docs")
