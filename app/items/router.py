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
    OverShareError,
)
from app.http.problems import describe_problems
from app.http.responses import JsonResponse
from app.http.routes import DemoReadRoute, IngestRoute
from app.http.types import Id, QueryInstant
from app.items.popularity import read_item_popularity
from app.items.schemas import (
    Item,
    ItemBatch,
    ItemPage,
    ItemPopularity,
    SimilarItems,
    Step,
    StoredItems,
    Title,
)
from app.items.service import find_item, list_items_page, remove_item, store_items
from app.items.similar import find_similar_items

router = APIRouter(prefix="/v1", tags=["items"], route_class=DemoReadRoute)
writing = APIRouter(prefix="/v1", tags=["items"], route_class=IngestRoute)


@router.get(
    "/items",
    summary="List stored items",
    response_model=ItemPage,
    responses=describe_problems(DatabaseUnavailableError, OverloadedError),
)
async def list_items(
    context: Annotated[AppContext, Depends(get_context)],
    q: Annotated[Title | None, Query(description="A part of the title; case is ignored.")] = None,
    cursor: Annotated[
        str | None, Query(max_length=1400, description="`next_cursor` of the previous page.")
    ] = None,
    limit: Annotated[
        int, Query(ge=1, le=500, description="Maximum number of items of a page.")
    ] = 50,
) -> JsonResponse:
    """List items in order of their ids, in pages."""
    return JsonResponse(await list_items_page(context, search=q, cursor=cursor, limit=limit))


@writing.put(
    "/items",
    summary="Create or replace items",
    response_model=StoredItems,
    responses=describe_problems(DatabaseUnavailableError, OverloadedError, has_body=True),
)
async def put_items(
    batch: ItemBatch, context: Annotated[AppContext, Depends(get_context)]
) -> JsonResponse:
    """Create items, or replace their descriptions.

    The model learns new items in the next training; until then it does not recommend them.
    """
    return JsonResponse(await store_items(context, batch))


@router.get(
    "/items/{item_id:id}/similar",
    summary="List items similar to one",
    response_model=SimilarItems,
    responses=describe_problems(
        ItemNotFoundError,
        ModelNotFoundError,
        ModelRefusedError,
        NoItemSpaceError,
        NoModelError,
        OverloadedError,
        OverShareError,
    ),
)
async def list_similar(
    item_id: Annotated[Id, Path(description="The item; a `/` is encoded as `%2F`.")],
    context: Annotated[AppContext, Depends(get_context)],
    n: Annotated[int, Query(ge=1, le=500, description="Maximum number of items.")] = 10,
    model_version: Annotated[
        Id | None, Query(description="The version that must answer. Default: the current one.")
    ] = None,
) -> JsonResponse:
    """List the items closest to one by the cosine of the item vectors, the same for every user.

    Deleted items and items that are not available now are left out.
    """
    return JsonResponse(
        await find_similar_items(context, item_id, n=n, model_version=model_version)
    )


@router.get(
    "/items/{item_id:id}/popularity",
    summary="Count an item's events over time",
    response_model=ItemPopularity,
    responses=describe_problems(ItemNotFoundError, DatabaseUnavailableError, OverloadedError),
)
async def read_popularity(
    item_id: Annotated[Id, Path(description="The item; a `/` is encoded as `%2F`.")],
    context: Annotated[AppContext, Depends(get_context)],
    step: Annotated[
        Step, Query(description="The length of a bucket, in UTC; weeks begin on Monday.")
    ] = "week",
    since: Annotated[
        QueryInstant | None, Query(description="Count no events before this instant.")
    ] = None,
    until: Annotated[
        QueryInstant | None, Query(description="Count no events after this instant.")
    ] = None,
) -> JsonResponse:
    """Count the stored events that name an item, by day, week or month, in total and by action.

    A span of more than 1,100 buckets is 422: use a longer step, or bound it with `since` and
    `until`. An item that is neither stored nor named by an event is 404.
    """
    return JsonResponse(
        await read_item_popularity(context, item_id, step=step, since=since, until=until)
    )


@router.get(
    "/items/{item_id:id}",
    summary="Read one item",
    response_model=Item,
    responses=describe_problems(ItemNotFoundError, DatabaseUnavailableError, OverloadedError),
)
async def read_item(
    item_id: Annotated[Id, Path(description="The item; a `/` is encoded as `%2F`.")],
    context: Annotated[AppContext, Depends(get_context)],
) -> JsonResponse:
    """Return the stored description of an item."""
    return JsonResponse(await find_item(context, item_id))


@writing.delete(
    "/items/{item_id:id}",
    summary="Delete one item",
    status_code=204,
    response_class=Response,
    responses=describe_problems(ItemNotFoundError, DatabaseUnavailableError, OverloadedError),
)
async def delete_item(
    item_id: Annotated[Id, Path(description="The item; a `/` is encoded as `%2F`.")],
    context: Annotated[AppContext, Depends(get_context)],
) -> None:
    """Delete an item. It is no longer recommended, even by models that contain it.

    Events that name it remain. Storing the item again restores it.
    """
    await remove_item(context, item_id)
