"""GET, PUT and POST /v1/models."""

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
    OverShareError,
    StoreUnavailableError,
)
from app.http.problems import describe_problems
from app.http.responses import JsonResponse
from app.http.routes import AdminRoute, DemoReadRoute, ReadRoute
from app.models import activation
from app.models import service as models
from app.models.detail import describe_model as build_description
from app.models.map import draw_map
from app.models.schemas import (
    ChangeList,
    ChangeRequest,
    CurrentVersion,
    ModelDetail,
    ModelList,
    ModelMap,
    ModelTraffic,
    TrafficRequest,
)
from model.inference.item_map import MOST_ITEMS

router = APIRouter(prefix="/v1", tags=["models"], route_class=DemoReadRoute)
# Included before `router`, whose path of a version matches any. Changes name people.
changes_router = APIRouter(prefix="/v1", tags=["models"], route_class=ReadRoute)
admin_router = APIRouter(prefix="/v1", tags=["models"], route_class=AdminRoute)

Version = Annotated[str, Path(description="A version that `GET /v1/models` lists.")]


@router.get(
    "/models",
    summary="List published models",
    response_model=ModelList,
    responses=describe_problems(StoreUnavailableError),
)
async def list_models(context: Annotated[AppContext, Depends(get_context)]) -> JsonResponse:
    """List every published bundle: its training data, its headline metrics and its role."""
    return JsonResponse(await models.list_models(context))


@router.get(
    "/models/traffic",
    summary="Read the challenger and the shadow",
    response_model=ModelTraffic,
    responses=describe_problems(StoreUnavailableError),
)
async def read_traffic(context: Annotated[AppContext, Depends(get_context)]) -> JsonResponse:
    """Return the challenger, its share of the users, and the shadow."""
    return JsonResponse(await activation.read_traffic(context))


@admin_router.put(
    "/models/traffic",
    summary="Set the challenger and the shadow",
    response_model=ModelTraffic,
    responses=describe_problems(
        ModelNotFoundError,
        ModelRefusedError,
        StoreUnavailableError,
        DatabaseUnavailableError,
        has_body=True,
    ),
)
async def put_traffic(
    request: Request, body: TrafficRequest, context: Annotated[AppContext, Depends(get_context)]
) -> JsonResponse:
    """Give a challenger a share of the users, set a shadow, or (with `{}`) clear both.

    Both are opened and verified first. Every other process follows within a poll interval
    (`KAIROS_POLL_INTERVAL_SECONDS`) and the time that it takes to open them.
    """
    actor = request.state.caller.name
    return JsonResponse(await activation.set_traffic(context, body, actor=actor))


@changes_router.get(
    "/models/changes",
    summary="List changes of the served models",
    response_model=ChangeList,
    responses=describe_problems(DatabaseUnavailableError, OverloadedError),
)
async def list_changes(
    context: Annotated[AppContext, Depends(get_context)],
    limit: Annotated[int, Query(ge=1, le=1000, description="Most changes to return.")] = 100,
) -> JsonResponse:
    """List recorded activations, rollbacks and traffic changes, newest first.

    `rollback_version` is the version that a rollback would activate now.
    """
    return JsonResponse(await activation.list_changes(context, limit))


@admin_router.post(
    "/models/rollback",
    summary="Roll back to the previous model",
    response_model=CurrentVersion,
    responses=describe_problems(
        ModelRefusedError,
        NothingToRollBackError,
        StoreUnavailableError,
        DatabaseUnavailableError,
        has_body=True,
    ),
)
async def roll_back(
    request: Request, body: ChangeRequest, context: Annotated[AppContext, Depends(get_context)]
) -> JsonResponse:
    """Make the version before the current one current again; a second rollback goes further back.

    The version is opened and verified first; on failure the active model is unchanged.
    """
    actor = request.state.caller.name
    return JsonResponse(await activation.roll_back(context, actor=actor, reason=body.reason))


@router.get(
    "/models/{version}",
    summary="Describe a model",
    response_model=ModelDetail,
    responses=describe_problems(
        ModelNotFoundError,
        ModelRefusedError,
        StoreUnavailableError,
        OverloadedError,
        OverShareError,
    ),
)
async def describe_model(
    version: Version, context: Annotated[AppContext, Depends(get_context)]
) -> JsonResponse:
    """Return a bundle's manifest, time kernels, attention profile, training record and clicks.

    A part that is unavailable is null, and `missing` says why.
    """
    return JsonResponse(await build_description(context, version))


@router.get(
    "/models/{version}/map",
    summary="Map a model's items",
    response_model=ModelMap,
    responses=describe_problems(
        ModelNotFoundError,
        ModelRefusedError,
        NoItemSpaceError,
        StoreUnavailableError,
        OverloadedError,
        OverShareError,
    ),
)
async def read_map(
    version: Version,
    context: Annotated[AppContext, Depends(get_context)],
    items: Annotated[
        int, Query(ge=1, le=MOST_ITEMS, description="Number of items: the most popular ones.")
    ] = 2000,
) -> JsonResponse:
    """Return the items in two dimensions: items that the model finds similar lie close together.

    The positions are those of a map of the 10,000 items with the most events, whatever the number
    of items returned.
    """
    return JsonResponse(await draw_map(context, version, items=items))


@admin_router.post(
    "/models/{version}/activate",
    summary="Activate a model",
    response_model=CurrentVersion,
    responses=describe_problems(
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
    body: ChangeRequest,
    context: Annotated[AppContext, Depends(get_context)],
) -> JsonResponse:
    """Open and verify a version, then make it the current one in every process.

    The responding process serves it at once, every other within a poll interval
    (`KAIROS_POLL_INTERVAL_SECONDS`) and the time that it takes to open the version. No request
    fails meanwhile; if the version cannot be opened, the active model is unchanged.
    """
    actor = request.state.caller.name
    return JsonResponse(
        await activation.activate(context, version, actor=actor, reason=body.reason)
    )
