"""GET, PUT and DELETE /v1/items."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Response

from app.context import AppContext, get_context
from app.errors import (
    DatabaseUnavailableError,
    ItemNotFoundError,
    ModelNotFoundError,
    ModelRefusedError,
    NoItemSpaceError,
    NoModelError,
    OverloadedError,
)
from app.http.problems import problems
from app.http.responses import JsonResponse
from app.http.routes import IngestRoute, ReadRoute
from app.http.types import Id, QueryInstant
from app.items.calendar import Step
from app.items.popularity import PopularityService
from app.items.schemas import (
    Item,
    ItemBatch,
    ItemPage,
    ItemPopularity,
    SimilarItems,
    StoredItems,
    Title,
)
from app.items.service import ItemService
from app.items.similar import SimilarItemService

router = APIRouter(prefix="/v1", tags=["items"], route_class=ReadRoute)
writing = APIRouter(prefix="/v1", tags=["items"], route_class=IngestRoute)


@router.get(
    "/items",
    summary="List stored items",
    response_model=ItemPage,
    responses=problems(DatabaseUnavailableError, OverloadedError),
)
async def list_items(
    context: Annotated[AppContext, Depends(get_context)],
    q: Annotated[Title | None, Query(description="Part of the title, in any case.")] = None,
    cursor: Annotated[
        str | None, Query(max_length=1400, description="`next_cursor` of the page before.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=500, description="Most items of a page.")] = 50,
) -> JsonResponse:
    """Items in order of their ids, a page at a time."""
    return JsonResponse(await ItemService(context).page(search=q, cursor=cursor, limit=limit))


@writing.put(
    "/items",
    summary="Create or replace items",
    response_model=StoredItems,
    responses=problems(DatabaseUnavailableError, OverloadedError, has_body=True),
)
async def put_items(
    batch: ItemBatch, context: Annotated[AppContext, Depends(get_context)]
) -> JsonResponse:
    """Store what is known of items, in place of what was known before.

    The model learns new items at the next training; until then it does not recommend them.
    """
    return JsonResponse(await ItemService(context).put(batch))


# Before the item's own address, which would take the rest of the path for a part of the id.
@router.get(
    "/items/{item_id:path}/similar",
    summary="List items that are like one",
    response_model=SimilarItems,
    responses=problems(
        ItemNotFoundError,
        ModelNotFoundError,
        ModelRefusedError,
        NoItemSpaceError,
        NoModelError,
        OverloadedError,
    ),
)
async def list_similar(
    item_id: Annotated[Id, Path(description="The item; may contain `/`.")],
    context: Annotated[AppContext, Depends(get_context)],
    n: Annotated[int, Query(ge=1, le=500, description="How many items to list.")] = 10,
    model_version: Annotated[
        Id | None, Query(description="The version that must answer. Default: the current one.")
    ] = None,
) -> JsonResponse:
    """Which items does the model place near this one? Nobody's history has a say.

    Items that are deleted or not available now are left out.
    """
    return JsonResponse(
        await SimilarItemService(context).similar(item_id, n=n, model_version=model_version)
    )


@router.get(
    "/items/{item_id:path}/popularity",
    summary="Count an item's events over time",
    response_model=ItemPopularity,
    responses=problems(ItemNotFoundError, DatabaseUnavailableError, OverloadedError),
)
async def read_popularity(
    item_id: Annotated[Id, Path(description="The item; may contain `/`.")],
    context: Annotated[AppContext, Depends(get_context)],
    step: Annotated[
        Step, Query(description="How long a bucket is: weeks begin on Monday, all are of UTC.")
    ] = "week",
    since: Annotated[
        QueryInstant | None, Query(description="Count no events before this instant.")
    ] = None,
    until: Annotated[
        QueryInstant | None, Query(description="Count no events after this instant.")
    ] = None,
) -> JsonResponse:
    """How often was this item chosen, day by day, week by week or month by month?

    Counts stored events, per action too. Where a span needs more than 1,100 buckets it is refused
    (422): ask for a longer step, or bound it with `since` and `until`. An item is unknown (404) if
    it is neither stored nor in any event.
    """
    return JsonResponse(
        await PopularityService(context).over_time(item_id, step=step, since=since, until=until)
    )


@router.get(
    "/items/{item_id:path}",
    summary="Read one item",
    response_model=Item,
    responses=problems(ItemNotFoundError, DatabaseUnavailableError, OverloadedError),
)
async def read_item(
    item_id: Annotated[Id, Path(description="The item; may contain `/`.")],
    context: Annotated[AppContext, Depends(get_context)],
) -> JsonResponse:
    """What was stored of an item."""
    return JsonResponse(await ItemService(context).find(item_id))


@writing.delete(
    "/items/{item_id:path}",
    summary="Delete one item",
    status_code=204,
    response_class=Response,
    responses=problems(ItemNotFoundError, DatabaseUnavailableError, OverloadedError),
)
async def delete_item(
    item_id: Annotated[Id, Path(description="The item; may contain `/`.")],
    context: Annotated[AppContext, Depends(get_context)],
) -> None:
    """Forget what was stored of an item, and recommend it no more, whatever the models know of it.

    Events that name it stay. Storing it again brings it back.
    """
    await ItemService(context).delete(item_id)
