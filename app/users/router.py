"""GET and DELETE /v1/users."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request

from app.context import AppContext, get_context
from app.errors import (
    DatabaseUnavailableError,
    ModelSaysNoTimeError,
    NoModelError,
    OverloadedError,
)
from app.http.problems import problems
from app.http.responses import JsonResponse
from app.http.routes import AdminRoute, ReadRoute
from app.http.types import Id, QueryInstant
from app.recommendations.schemas import RecommendationAnswer, RecommendationRequest
from app.recommendations.service import RecommendationService
from app.users.erasure import ErasureService
from app.users.next_time import NextTimeService
from app.users.schemas import (
    ErasedUser,
    NextTimeAnswer,
    UserHistory,
    UserList,
)
from app.users.service import UserService

router = APIRouter(prefix="/v1", tags=["users"], route_class=ReadRoute)
erasing = APIRouter(prefix="/v1", tags=["users"], route_class=AdminRoute)


@router.get(
    "/users",
    summary="List users with stored events",
    response_model=UserList,
    responses=problems(DatabaseUnavailableError, OverloadedError),
)
async def list_users(
    context: Annotated[AppContext, Depends(get_context)],
    prefix: Annotated[Id | None, Query(description="What the ids start with.")] = None,
    limit: Annotated[int, Query(ge=1, le=500, description="Most users to list.")] = 50,
) -> JsonResponse:
    """Users in order of their ids, for a picker that narrows down as one types."""
    return JsonResponse(await UserService(context).list(prefix=prefix or "", limit=limit))


# Before the user's own address, which would take the rest of the path for a part of the id.
@router.get(
    "/users/{user_id:path}/next-time",
    summary="Say when a user's next event comes",
    response_model=NextTimeAnswer,
    responses=problems(
        ModelSaysNoTimeError, NoModelError, DatabaseUnavailableError, OverloadedError
    ),
)
async def read_next_time(
    user_id: Annotated[Id, Path(description="The user; may contain `/`.")],
    context: Annotated[AppContext, Depends(get_context)],
    at: Annotated[
        QueryInstant | None,
        Query(description="As of when; later events are not used. Default: now."),
    ] = None,
) -> JsonResponse:
    """When does this user come back, given that they have not until `at`?

    Exact for the distribution that the model gives. Without any usable event nothing is known, and
    every instant is null.
    """
    return JsonResponse(await NextTimeService(context).estimate(user_id, at))


@router.get(
    "/users/{user_id:path}/recommendations",
    summary="Recommend items to a user",
    response_model=RecommendationAnswer,
    responses=problems(NoModelError, DatabaseUnavailableError, OverloadedError),
)
async def recommend_to_user(
    user_id: Annotated[Id, Path(description="The user; may contain `/`.")],
    context: Annotated[AppContext, Depends(get_context)],
    n: Annotated[int, Query(ge=1, le=500, description="How many items to answer.")] = 10,
    at: Annotated[
        QueryInstant | None,
        Query(description="The query time; events after it are not used. Default: now."),
    ] = None,
) -> JsonResponse:
    """The simple case of `POST /v1/recommendations`: the stored history, and no conditions."""
    asked = RecommendationRequest.model_construct(user_id=user_id, n=n, query_time=at)
    return JsonResponse(await RecommendationService(context).recommend(asked))


@router.get(
    "/users/{user_id:path}",
    summary="Read a user's history",
    response_model=UserHistory,
    responses=problems(DatabaseUnavailableError, OverloadedError),
)
async def read_user(
    user_id: Annotated[Id, Path(description="The user; may contain `/`.")],
    context: Annotated[AppContext, Depends(get_context)],
    limit: Annotated[int, Query(ge=1, le=1000, description="Most events to list.")] = 100,
) -> JsonResponse:
    """The newest stored events of a user; a user nobody has heard of simply has none."""
    return JsonResponse(await UserService(context).history(user_id, limit=limit))


@erasing.delete(
    "/users/{user_id:path}",
    summary="Erase a user",
    response_model=ErasedUser,
    responses=problems(DatabaseUnavailableError, OverloadedError),
)
async def erase_user(
    user_id: Annotated[Id, Path(description="The user; may contain `/`.")],
    context: Annotated[AppContext, Depends(get_context)],
    request: Request,
) -> JsonResponse:
    """Forget a user: every event and every record of what was shown, here and in later trainings.

    Copies of erased events that are sent or imported again are refused. What happens after the
    erasure is kept: whoever comes back is a new user. Erasing again is safe.
    """
    erasures = ErasureService(context.database, context.impressions)
    return JsonResponse(await erasures.erase(user_id, actor=request.state.caller.name))
