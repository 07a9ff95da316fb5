"""Which networks answer here."""

from fastapi import APIRouter

from api.dependencies import READ, Pipeline
from api.documentation import problems
from api.schemas import LoadedModel, ModelList

router = APIRouter(
    prefix="/v1",
    tags=["models"],
    dependencies=[READ],
    responses=problems("unauthorized", "forbidden", "not_ready"),
)


@router.get("/models")
async def list_models(pipeline: Pipeline) -> ModelList:
    """List the networks that the server runs, with their licence, hash and device."""
    parts = (pipeline.embedder, pipeline.detector)
    return ModelList(items=[LoadedModel.from_bundle(part.bundle, part.runtime) for part in parts])
