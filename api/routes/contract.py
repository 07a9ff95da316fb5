"""The contract of the server, from which /docs and generated clients are made."""

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse

router = APIRouter(include_in_schema=False)


@router.get("/openapi.json")
async def openapi(request: Request) -> JSONResponse:
    """The contract; behind a proxy's prefix with the server's address there."""
    published, prefix = request.app.openapi(), request.scope.get("root_path", "").rstrip("/")
    return JSONResponse({**published, "servers": [{"url": prefix}]} if prefix else published)
