"""What is published, what of it is served, and changing that."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request

from app.context import AppContext, get_context
from app.errors import (
    DatabaseUnavailableError,
    ModelNotFoundError,
    ModelRefusedError,
    NoItemSpaceError,
    NothingToRollBackError,
    OverloadedError,
    StoreUnavailableError,
)
from app.http.problems import problems
from app.http.responses import JsonResponse
from app.http.routes import AdminRoute, ReadRoute
from app.models.description import ModelDetail
from app.models.detail import DetailService
from app.models.lifecycle import LifecycleService
from app.models.map import MapService, ModelMap
from app.models.schemas import (
    ChangeList,
    ChangeRequest,
    CurrentVersion,
    ModelList,
    ModelTraffic,
    TrafficRequest,
)
from app.models.service import ModelService
from model.inference.item_map import MOST_ITEMS

router = APIRouter(prefix="/v1", tags=["models"], route_class=ReadRoute)
changing = APIRouter(prefix="/v1", tags=["models"], route_class=AdminRoute)

Version = Annotated[str, Path(description="As `GET /v1/models` lists it.")]


@router.get(
    "/models",
    summary="List published models",
    response_model=ModelList,
    responses=problems(StoreUnavailableError),
)
async def list_models(context: Annotated[AppContext, Depends(get_context)]) -> JsonResponse:
    """Every published bundle: what it was trained on, how well it did, and what it answers here."""
    return JsonResponse(await ModelService(context).list())


@router.get(
    "/models/traffic",
    summary="Which models answer beside the current one?",
    response_model=ModelTraffic,
    responses=problems(StoreUnavailableError),
)
async def read_traffic(context: Annotated[AppContext, Depends(get_context)]) -> JsonResponse:
    """The challenger and its share of the users, and the shadow."""
    return JsonResponse(await LifecycleService(context).traffic())


@changing.put(
    "/models/traffic",
    summary="Have other models answer beside the current one",
    response_model=ModelTraffic,
    responses=problems(
        ModelNotFoundError,
        ModelRefusedError,
        StoreUnavailableError,
        DatabaseUnavailableError,
        has_body=True,
    ),
)
async def put_traffic(
    request: Request, asked: TrafficRequest, context: Annotated[AppContext, Depends(get_context)]
) -> JsonResponse:
    """Give a challenger a share of the users, ask a shadow, too, or (with `{}`) neither.

    Both are opened and checked first; in every other process they answer within two seconds.
    """
    actor = request.state.caller.name
    return JsonResponse(await LifecycleService(context).route(asked, actor=actor))


@router.get(
    "/models/changes",
    summary="Who changed what is served?",
    response_model=ChangeList,
    responses=problems(DatabaseUnavailableError, OverloadedError),
)
async def list_changes(
    context: Annotated[AppContext, Depends(get_context)],
    limit: Annotated[int, Query(ge=1, le=1000, description="Most changes to answer.")] = 100,
) -> JsonResponse:
    """The record of activations, rollbacks and traffic, newest first.

    `rollback_version` is the version that a rollback would activate now.
    """
    return JsonResponse(await LifecycleService(context).changes(limit))


@changing.post(
    "/models/rollback",
    summary="Go back to the model before",
    response_model=CurrentVersion,
    responses=problems(
        ModelRefusedError,
        NothingToRollBackError,
        StoreUnavailableError,
        DatabaseUnavailableError,
        has_body=True,
    ),
)
async def roll_back(
    request: Request, asked: ChangeRequest, context: Annotated[AppContext, Depends(get_context)]
) -> JsonResponse:
    """Make the version that was current before this one current again; once more goes further back.

    It is opened and checked first; where it does not open, what serves, serves on.
    """
    actor = request.state.caller.name
    return JsonResponse(await LifecycleService(context).roll_back(actor=actor, reason=asked.reason))


@router.get(
    "/models/{version}",
    summary="Describe a model",
    response_model=ModelDetail,
    responses=problems(
        ModelNotFoundError, ModelRefusedError, StoreUnavailableError, OverloadedError
    ),
)
async def describe_model(
    version: Version, context: Annotated[AppContext, Depends(get_context)]
) -> JsonResponse:
    """A bundle's manifest, what it makes of time, and what came of its answers.

    What there is none of is null, and `missing` says why.
    """
    return JsonResponse(await DetailService(context).describe(version))


@router.get(
    "/models/{version}/map",
    summary="Draw a model's items",
    response_model=ModelMap,
    responses=problems(
        ModelNotFoundError,
        ModelRefusedError,
        NoItemSpaceError,
        StoreUnavailableError,
        OverloadedError,
    ),
)
async def read_map(
    version: Version,
    context: Annotated[AppContext, Depends(get_context)],
    items: Annotated[
        int, Query(ge=1, le=MOST_ITEMS, description="How many items: the most popular ones.")
    ] = 2000,
) -> JsonResponse:
    """The items in two dimensions: those that the model takes for alike lie together.

    The axes are those of the 10,000 most popular items, however many are asked for.
    """
    return JsonResponse(await MapService(context).draw(version, items=items))


@changing.post(
    "/models/{version}/activate",
    summary="Make a model the current one",
    response_model=CurrentVersion,
    responses=problems(
        ModelNotFoundError,
        ModelRefusedError,
        StoreUnavailableError,
        DatabaseUnavailableError,
        has_body=True,
    ),
)
async def activate_model(
    request: Request,
    version: Version,
    asked: ChangeRequest,
    context: Annotated[AppContext, Depends(get_context)],
) -> JsonResponse:
    """Open and check a version, and only then have every process answer with it.

    This process does so once this is answered, every other within two seconds. No request fails
    meanwhile; where the version does not open, what serves, serves on.
    """
    service, actor = LifecycleService(context), request.state.caller.name
    return JsonResponse(await service.activate(version, actor=actor, reason=asked.reason))
