"""GET and DELETE /v1/users."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request

from app.auth.access import Caller
from app.context import AppContext, get_context
from app.db.erasure_log import open_erasure_log
from app.errors import (
    DatabaseUnavailableError,
    ErasureLogError,
    NoEventTimeError,
    NoModelError,
    OverloadedError,
    OverShareError,
)
from app.http.problems import describe_problems
from app.http.responses import JsonResponse
from app.http.routes import AdminRoute, ReadRoute, get_caller
from app.http.types import Id, QueryInstant
from app.recommendations.schemas import RecommendationAnswer, RecommendationRequest
from app.recommendations.service import recommend_items
from app.users.next_time import predict_next_time
from app.users.schemas import (
    ErasedUser,
    NextTimeAnswer,
    UserHistory,
    UserList,
)
from app.users.service import erase_user_data, list_known_users, read_user_history

router = APIRouter(prefix="/v1", tags=["users"], route_class=ReadRoute)
erasing = APIRouter(prefix="/v1", tags=["users"], route_class=AdminRoute)


async def require_reached_user(
    user_id: Annotated[Id, Path(description="The user; a `/` is encoded as `%2F`.")],
    caller: Annotated[Caller, Depends(get_caller)],
) -> str:
    """Return the user of the path, if the caller's key reaches it."""
    caller.require_user(user_id)
    return user_id


UserId = Annotated[str, Depends(require_reached_user)]


@router.get(
    "/users",
    summary="List users with stored events",
    response_model=UserList,
    responses=describe_problems(DatabaseUnavailableError, OverloadedError),
)
async def list_users(
    context: Annotated[AppContext, Depends(get_context)],
    caller: Annotated[Caller, Depends(get_caller)],
    prefix: Annotated[Id | None, Query(description="A prefix of the ids.")] = None,
    limit: Annotated[int, Query(ge=1, le=500, description="Maximum number of users.")] = 50,
) -> JsonResponse:
    """List users in order of their ids, narrowed down by a prefix.

    A key for users whose ids begin with a prefix lists those only. The audit records requests for
    more than 100 users.
    """
    reached = caller.narrow_prefix(prefix or "")
    return JsonResponse(
        await list_known_users(context, prefix=reached, limit=limit, actor=caller.name)
    )


@router.get(
    "/users/{user_id:id}/next-time",
    summary="Predict when a user's next event happens",
    response_model=NextTimeAnswer,
    responses=describe_problems(
        NoEventTimeError,
        NoModelError,
        DatabaseUnavailableError,
        OverloadedError,
        OverShareError,
    ),
)
async def read_next_time(
    user_id: UserId,
    context: Annotated[AppContext, Depends(get_context)],
    at: Annotated[
        QueryInstant | None,
        Query(description="The query time; later events are not used. Default: now."),
    ] = None,
) -> JsonResponse:
    """Predict the instant of a user's next event, given that none has happened until `at`.

    The quantiles are exact for the distribution that the model predicts. Without a usable event
    every instant is null.
    """
    return JsonResponse(await predict_next_time(context, user_id, at))


@router.get(
    "/users/{user_id:id}/recommendations",
    summary="Recommend items to a user",
    response_model=RecommendationAnswer,
    responses=describe_problems(
        NoModelError, DatabaseUnavailableError, OverloadedError, OverShareError
    ),
)
async def recommend_to_user(
    user_id: UserId,
    context: Annotated[AppContext, Depends(get_context)],
    n: Annotated[int, Query(ge=1, le=500, description="Maximum number of items.")] = 10,
    at: Annotated[
        QueryInstant | None,
        Query(description="The query time; later events are not used. Default: now."),
    ] = None,
) -> JsonResponse:
    """Recommend for the stored history, without filters: a simple `POST /v1/recommendations`."""
    parameters = RecommendationRequest.model_construct(user_id=user_id, n=n, query_time=at)
    return JsonResponse(await recommend_items(context, parameters))


@router.get(
    "/users/{user_id:id}",
    summary="Read a user's history",
    response_model=UserHistory,
    responses=describe_problems(DatabaseUnavailableError, OverloadedError),
)
async def read_user(
    user_id: UserId,
    context: Annotated[AppContext, Depends(get_context)],
    limit: Annotated[int, Query(ge=1, le=1000, description="Maximum number of events.")] = 100,
) -> JsonResponse:
    """Read the newest stored events of a user; an unknown user has none."""
    return JsonResponse(await read_user_history(context, user_id, limit=limit))


@erasing.delete(
    "/users/{user_id:id}",
    summary="Erase a user",
    response_model=ErasedUser,
    responses=describe_problems(DatabaseUnavailableError, ErasureLogError, OverloadedError),
)
async def erase_user(
    user_id: UserId,
    context: Annotated[AppContext, Depends(get_context)],
    request: Request,
) -> JsonResponse:
    """Delete every event and every impression of a user.

    Copies of erased events are rejected when they are sent or imported again, and later trainings
    leave them out. Events after the erasure are stored: a returning user is a new user. Erasing
    again is safe.
    """
    return JsonResponse(
        await erase_user_data(
            context.database,
            user_id,
            actor=request.state.caller.name,
            log=open_erasure_log(context.settings.database_url, context.settings.erasure_log),
            impressions=context.impressions,
        )
    )
