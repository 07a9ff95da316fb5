"""The metrics that Prometheus scrapes."""

import asyncio

from fastapi import APIRouter, Request, Response

from sameface.api.metrics import Metrics
from sameface.api.openapi.responses import STORE_PROBLEMS, document_problems

EXAMPLE = """\
# HELP sameface_requests_total Requests by route, status and caller.
# TYPE sameface_requests_total counter
sameface_requests_total{caller="anonymous",route="/v1/verify",status="200"} 1207.0
"""

router = APIRouter(tags=["health"])


@router.get(
    "/metrics",
    response_class=Response,
    responses={
        200: {"content": {"text/plain": {"schema": {"type": "string"}, "example": EXAMPLE}}},
        **document_problems(*STORE_PROBLEMS),
    },
)
async def metrics(request: Request) -> Response:
    """Say how much is asked, how long it takes and how far the gallery is, for Prometheus."""
    watched: Metrics = request.app.state.metrics
    content = await asyncio.to_thread(watched.collect)
    return Response(content, media_type="text/plain; version=0.0.4; charset=utf-8")
