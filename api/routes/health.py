"""Liveness and readiness of the server."""

from fastapi import APIRouter, Request

from sameface.api.dependencies import Gallery, Pipeline
from sameface.api.errors import NotReady
from sameface.api.openapi import examples
from sameface.api.openapi.responses import responses
from sameface.api.schemas.health import Live, Ready

router = APIRouter(prefix="/health", tags=["health"])


@router.get("/live", responses=responses(examples.LIVE))
async def live() -> Live:
    """Answer as long as the process does."""
    return Live()


@router.get("/ready", responses=responses(examples.READY, "not_ready"))
async def ready(request: Request, pipeline: Pipeline, gallery: Gallery) -> Ready:
    """Answer 200 while the networks are warm, the store can be read and the server does not stop."""
    if request.app.state.stopping:
        raise NotReady("The server is stopping.")
    if fault := await request.app.state.store_check.find_fault(gallery):
        raise NotReady(f"The store cannot be read: {fault}", retry_after_seconds=2)
    sessions = pipeline.embedder.sessions
    return Ready(
        device=sessions.device,
        provider=sessions.provider,
        recognizer=pipeline.embedder.bundle.contract.name,
        detector=pipeline.detector.bundle.contract.name,
        index="milvus" if gallery.milvus else "faiss",
        index_fault=await request.app.state.store_check.find_index_fault(gallery),
    )
