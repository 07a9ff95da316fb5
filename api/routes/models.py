"""The networks that the server runs."""

from fastapi import APIRouter

from sameface.api.access.caller import READ
from sameface.api.dependencies import Pipeline
from sameface.api.openapi import examples
from sameface.api.openapi.responses import KEY_PROBLEMS, responses
from sameface.api.schemas.models import LoadedModel, ModelList

router = APIRouter(prefix="/v1", tags=["models"], dependencies=[READ])


@router.get("/models", responses=responses(examples.MODELS, *KEY_PROBLEMS))
async def list_models(pipeline: Pipeline) -> ModelList:
    """List the networks that the server runs, with their licence, hash and device."""
    parts = (pipeline.embedder, pipeline.detector)
    return ModelList(items=[LoadedModel.from_bundle(part.bundle, part.sessions) for part in parts])
