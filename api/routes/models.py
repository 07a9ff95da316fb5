"""Which networks answer here."""

from fastapi import APIRouter

from sameface.api.dependencies import READ, Pipeline
from sameface.api.openapi import examples
from sameface.api.openapi.responses import answers
from sameface.api.schemas.fields import LoadedModel, ModelList

router = APIRouter(prefix="/v1", tags=["models"], dependencies=[READ])


@router.get("/models", responses=answers(examples.MODELS, "unauthorized", "forbidden", "not_ready"))
async def list_models(pipeline: Pipeline) -> ModelList:
    """List the networks that the server runs, with their licence, hash and device."""
    parts = (pipeline.embedder, pipeline.detector)
    return ModelList(items=[LoadedModel.from_bundle(part.bundle, part.sessions) for part in parts])
