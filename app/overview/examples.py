"""Example users for an interval since the last event."""

import math
from collections.abc import Callable

from app.context import AppContext
from app.histories.schemas import HistoryRequest
from app.histories.service import select_predictor
from app.http.types import format_instant
from app.overview.cohort import MOST_USERS, USERS_PER_READ, read_queries, sample_users
from app.overview.schemas import ExampleUser, ExampleUsers
from app.serving.item_overlay import ItemOverlayView
from model.catalog import Catalog
from model.clock import MICROSECONDS_PER_SECOND
from model.history import Event, Query


async def find_example_users(
    context: AppContext,
    *,
    prefix: str,
    min_seconds: float,
    max_seconds: float,
    at: int | None,
    action: str | None,
    category: str | None,
    n: int,
    model_version: str | None,
) -> ExampleUsers:
    """Find users and query times at which their last event is that old, among sampled users.

    Args:
        min_seconds: the least time since the last event, and `max_seconds` the most.
        at: the latest query time, epoch microseconds; None for the end of the training data.
        action: of the last event; None for any.
        category: of the item of the last event; None for any.

    Raises:
        NoModelError: if no model is active.
        ModelNotFoundError: if the request pins a version that is not published.
        ModelRefusedError: if it pins a version that cannot be opened.
        DatabaseUnavailableError: if the events cannot be read.
        OverloadedError: if too many requests are waiting.
    """
    predictor = await select_predictor(context, HistoryRequest(model_version=model_version))
    at = predictor.bundle.manifest.data_window.last_at if at is None else at
    overlay = context.item_overlay.get_view(predictor.version, predictor.catalog)

    def applies(event: Event) -> bool:
        return (action is None or event.action == action) and (
            category is None or category in _list_categories(event, predictor.catalog, overlay)
        )

    # The middle of a logarithmic axis, which has no zero.
    age = math.sqrt(min_seconds * max_seconds) if min_seconds else max_seconds / 2
    examples: list[ExampleUser] = []
    searched = 0
    async with context.overviews.take_turn():
        sampled = await sample_users(context, prefix=prefix, at=at, users=MOST_USERS)
        while len(examples) < n and searched < len(sampled):
            page = sampled[searched : searched + USERS_PER_READ]
            found = (
                _find_example(query, round(age * MICROSECONDS_PER_SECOND), applies)
                for query in await read_queries(context, page, at)
            )
            examples += [example for example in found if example is not None]
            searched += len(page)
    return ExampleUsers(
        model_version=predictor.version,
        at=format_instant(at),
        searched_users=searched,
        users=tuple(examples[:n]),
    )


def _list_categories(event: Event, catalog: Catalog, overlay: ItemOverlayView) -> tuple[str, ...]:
    row = catalog.find(event.item_id)
    return () if row is None else overlay.categories(row)


def _find_example(query: Query, age: int, applies: Callable[[Event], bool]) -> ExampleUser | None:
    """Find the latest event of a history after which nothing happened for longer than an age.

    Args:
        query: its query time counts as the next event after the last one.
        age: microseconds.
        applies: whether an event is one of those that may be the last one.
    """
    next_at = query.query_time
    for event in reversed(query.history):
        # Of the events of one instant the last one alone precedes another instant.
        if event.at < next_at and event.at + age <= next_at and applies(event):
            return ExampleUser(
                user_id=query.user_id or "",
                query_time=format_instant(event.at + age),
                last_event_at=format_instant(event.at),
                item_id=event.item_id,
                action=event.action,
            )
        next_at = event.at
    return None
