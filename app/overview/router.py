"""GET /v1/overview, and GET /v1/items/{item_id}/recipients."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query

from app.auth.access import Caller
from app.context import AppContext, get_context
from app.errors import (
    DatabaseUnavailableError,
    DisconnectedError,
    ItemNotFoundError,
    ModelNotFoundError,
    ModelRefusedError,
    NoModelError,
    OverloadedError,
    OverShareError,
    UnprocessableError,
)
from app.http.problems import describe_problems
from app.http.responses import JsonResponse
from app.http.routes import ReadRoute, get_caller
from app.http.types import Action, Id, QueryInstant
from app.overview.changes import find_changed_users
from app.overview.cohort import DEFAULT_USERS, MOST_USERS
from app.overview.examples import find_example_users
from app.overview.recipients import find_recipients
from app.overview.schemas import ChangedUsers, ExampleUsers, ItemRecipients

router = APIRouter(prefix="/v1", tags=["overview"], route_class=ReadRoute)

_LONGEST_SECONDS = 100 * 366 * 86_400
_Context = Annotated[AppContext, Depends(get_context)]
_Caller = Annotated[Caller, Depends(get_caller)]
_Version = Annotated[
    Id | None, Query(description="The version that must answer. Default: the current one.")
]
_Users = Annotated[
    int, Query(ge=1, le=MOST_USERS, description="Maximum number of users of a sample.")
]
_Listed = Annotated[int, Query(ge=1, le=100, description="Maximum number of users to return.")]


@router.get(
    "/overview/changes",
    summary="List users whose items change the most",
    response_model=ChangedUsers,
    responses=describe_problems(
        DisconnectedError,
        NoModelError,
        ModelNotFoundError,
        ModelRefusedError,
        DatabaseUnavailableError,
        OverloadedError,
        OverShareError,
    ),
)
async def list_changed_users(
    context: _Context,
    caller: _Caller,
    at: Annotated[
        QueryInstant | None,
        Query(description="One instant. Default: the end of the model's training data."),
    ] = None,
    until: Annotated[
        QueryInstant | None, Query(description="The other instant. Default: 30 days after `at`.")
    ] = None,
    users: _Users = DEFAULT_USERS,
    n: _Listed = 10,
    model_version: _Version = None,
) -> JsonResponse:
    """Compare the ten best items of a sample of users at two instants.

    The sample is of the users with the latest events up to the earlier instant; at each instant
    later events are not read. A key for users whose ids begin with a prefix samples those only.
    """
    return JsonResponse(
        await find_changed_users(
            context,
            prefix=caller.narrow_prefix(""),
            at=at,
            until=until,
            users=users,
            n=n,
            model_version=model_version,
        )
    )


@router.get(
    "/overview/examples",
    summary="List users with a last event of some age",
    response_model=ExampleUsers,
    responses=describe_problems(
        DisconnectedError,
        NoModelError,
        ModelNotFoundError,
        ModelRefusedError,
        DatabaseUnavailableError,
        OverloadedError,
    ),
)
async def list_example_users(
    context: _Context,
    caller: _Caller,
    max_seconds: Annotated[
        float,
        Query(gt=0, le=_LONGEST_SECONDS, description="The most seconds since the last event."),
    ] = 86_400,
    min_seconds: Annotated[
        float,
        Query(ge=0, le=_LONGEST_SECONDS, description="The least seconds since the last event."),
    ] = 0,
    at: Annotated[
        QueryInstant | None,
        Query(
            description="The latest query time; later events are not read. Default: the end of the "
            "model's training data."
        ),
    ] = None,
    action: Annotated[Action | None, Query(description="Of the last event.")] = None,
    category: Annotated[Id | None, Query(description="Of the item of the last event.")] = None,
    n: _Listed = 10,
    model_version: _Version = None,
) -> JsonResponse:
    """List users, each with a query time at which the last event is of the middle age of a range.

    Sought among the 200 users with the latest events up to `at`. The middle is the geometric mean
    of `min_seconds` and `max_seconds`, or half of the latter if the former is 0.
    """
    if min_seconds > max_seconds:
        raise UnprocessableError(
            f"min_seconds is at most max_seconds, but {min_seconds:g} > {max_seconds:g}; swap them"
        )
    return JsonResponse(
        await find_example_users(
            context,
            prefix=caller.narrow_prefix(""),
            min_seconds=min_seconds,
            max_seconds=max_seconds,
            at=at,
            action=action,
            category=category,
            n=n,
            model_version=model_version,
        )
    )


@router.get(
    "/items/{item_id:id}/recipients",
    summary="List users who would be recommended an item",
    response_model=ItemRecipients,
    responses=describe_problems(
        DisconnectedError,
        ItemNotFoundError,
        NoModelError,
        ModelNotFoundError,
        ModelRefusedError,
        DatabaseUnavailableError,
        OverloadedError,
        OverShareError,
    ),
)
async def list_recipients(
    item_id: Annotated[Id, Path(description="The item; a `/` is encoded as `%2F`.")],
    context: _Context,
    caller: _Caller,
    at: Annotated[
        QueryInstant | None,
        Query(description="The latest instant. Default: the end of the model's training data."),
    ] = None,
    instants: Annotated[int, Query(ge=1, le=6, description="Number of instants.")] = 3,
    step_days: Annotated[
        int, Query(ge=1, le=366, description="Days from each instant to the next.")
    ] = 30,
    users: _Users = DEFAULT_USERS,
    n: _Listed = 10,
    model_version: _Version = None,
) -> JsonResponse:
    """Find an item among the 100 best of each of a sample of users, at a few instants.

    Every instant has a sample of its own: the users with the latest events up to it; later events
    are not read. As in a recommendation by default, items of a user's history are left out, and so
    are items that are unavailable at the instant.
    """
    return JsonResponse(
        await find_recipients(
            context,
            item_id,
            prefix=caller.narrow_prefix(""),
            at=at,
            instants=instants,
            step_days=step_days,
            users=users,
            n=n,
            model_version=model_version,
        )
    )
