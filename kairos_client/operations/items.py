"""What is known of items."""

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

from kairos_client.answers.items import (
    Item,
    ItemPage,
    ItemPopularity,
    SimilarItems,
    StoredItems,
)
from kairos_client.calls import Again, Call, ask, fetch, nothing
from kairos_client.told import ItemDescription, fields_of
from kairos_client.wire import address, query

_OTHER_OPERATIONS = ("/similar", "/popularity")


def put_items(items: Iterable[ItemDescription]) -> Call[StoredItems]:
    """Store what is known of at most 1,000 items, in place of what was known before."""
    fields = {"items": fields_of(items)}
    return ask("put_items", "/v1/items", fields, StoredItems, method="PUT")


def list_items(
    q: str | None = None, *, cursor: str | None = None, limit: int | None = None
) -> Call[ItemPage]:
    """A page of the items in order of their ids; `q` is a part of the title, in any case."""
    asked = query({"q": q, "cursor": cursor, "limit": limit})
    return fetch("list_items", "/v1/items" + asked, ItemPage)


def read_item(item_id: str) -> Call[Item]:
    """What was stored of an item."""
    path = address("/v1/items/{}", item_id, ambiguous=_OTHER_OPERATIONS)
    return fetch("read_item", path, Item)


def delete_item(item_id: str) -> Call[None]:
    """Forget what was stored of an item, and recommend it no more."""
    path = address("/v1/items/{}", item_id)
    return Call("delete_item", "DELETE", path, nothing, Again.SAFELY, is_done_when_gone=True)


def list_similar(
    item_id: str, *, n: int | None = None, model_version: str | None = None
) -> Call[SimilarItems]:
    """Which items are like this one, as a model has learned them?"""
    path = address("/v1/items/{}/similar", item_id)
    asked = query({"n": n, "model_version": model_version})
    return fetch("list_similar", path + asked, SimilarItems)


def read_popularity(
    item_id: str,
    *,
    step: Literal["day", "week", "month"] | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Call[ItemPopularity]:
    """How often was this item chosen, day by day, week by week or month by month?"""
    path = address("/v1/items/{}/popularity", item_id)
    asked = query({"step": step, "since": since, "until": until})
    return fetch("read_popularity", path + asked, ItemPopularity)
