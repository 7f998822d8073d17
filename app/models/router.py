"""GET /v1/models."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path

from app.answers import JsonAnswer
from app.errors import ModelNotFoundError, ModelRefusedError
from app.guarded import ReadRoute
from app.models.schemas import ModelDetail, ModelList
from app.models.service import ModelService
from app.parts import Parts, parts_of
from app.problems import problems

router = APIRouter(prefix="/v1", tags=["models"], route_class=ReadRoute)


@router.get(
    "/models",
    summary="List published models",
    response_model=ModelList,
    responses=problems(),
)
async def list_models(parts: Annotated[Parts, Depends(parts_of)]) -> JsonAnswer:
    """Every published bundle: which one is current, and which one this process serves."""
    return JsonAnswer(await ModelService(parts).list())


@router.get(
    "/models/{version}",
    summary="Describe a model",
    response_model=ModelDetail,
    responses=problems(ModelNotFoundError, ModelRefusedError),
)
async def describe_model(
    version: Annotated[str, Path(description="As `GET /v1/models` lists it.")],
    parts: Annotated[Parts, Depends(parts_of)],
) -> JsonAnswer:
    """A bundle's manifest: configuration, data window, counts, metrics, checksums."""
    return JsonAnswer(await ModelService(parts).describe(version))
