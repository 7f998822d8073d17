"""Who would be recommended an item, and when."""

from collections.abc import Sequence

from app.context import AppContext
from app.errors import ItemNotFoundError
from app.histories.schemas import HistoryRequest
from app.histories.service import select_predictor
from app.http.types import format_instant
from app.overview.cohort import read_queries, recommend_to_each, sample_users
from app.overview.schemas import ItemRecipients, Recipient, RecipientsAtInstant
from model import errors
from model.clock import FIRST_INSTANT, MICROSECONDS_PER_DAY
from model.history import Query
from model.inference.answers import Recommendation
from model.inference.predictor import Predictor

RANKS = 100
"""An item beyond this rank is not recommended."""
_SHOWN_RANKS = 10


async def find_recipients(
    context: AppContext,
    item_id: str,
    *,
    prefix: str,
    at: int | None,
    instants: int,
    step_days: int,
    users: int,
    n: int,
    model_version: str | None,
) -> ItemRecipients:
    """Recommend to a sample of users at each of some instants, and find an item among theirs.

    Args:
        at: the latest instant, epoch microseconds; None for the end of the training data.
        instants: how many, each `step_days` before the one after it.
        users: of each sample.
        n: recipients of each instant.

    Raises:
        ItemNotFoundError: if the model's catalog lacks the item.
        NoModelError: if no model is active.
        ModelNotFoundError: if the request pins a version that is not published.
        ModelRefusedError: if it pins a version that cannot be opened.
        DatabaseUnavailableError: if the events cannot be read.
        OverloadedError: if too many requests are waiting.
    """
    predictor = await select_predictor(context, HistoryRequest(model_version=model_version))
    try:
        predictor.catalog.row(item_id)
    except errors.UnknownItemError as error:
        raise ItemNotFoundError(str(error)) from error
    last = predictor.bundle.manifest.data_window.last_at if at is None else at
    step = step_days * MICROSECONDS_PER_DAY
    # Each once: near the first instant of all, several would be that one.
    query_times = dict.fromkeys(max(last - back * step, FIRST_INSTANT) for back in range(instants))
    found = [
        await _find_at(context, predictor, item_id, prefix, query_time, users=users, n=n)
        for query_time in query_times
    ]
    return ItemRecipients(item_id, predictor.version, tuple(found))


async def _find_at(
    context: AppContext,
    predictor: Predictor,
    item_id: str,
    prefix: str,
    query_time: int,
    *,
    users: int,
    n: int,
) -> RecipientsAtInstant:
    async with context.overviews.take_turn():
        sampled = await sample_users(context, prefix=prefix, at=query_time, users=users)
        queries = await read_queries(context, sampled, query_time)
    # Not within the turn: the scheduler bounds what runs beside each other by its cost.
    recommendations = await recommend_to_each(context, predictor, queries, RANKS)
    known = sum(recommendation.fallback is None for recommendation in recommendations)
    recipients = _list_recipients(item_id, queries, recommendations)
    shown = sum(recipient.rank <= _SHOWN_RANKS for recipient in recipients)
    return RecipientsAtInstant(
        query_time=format_instant(query_time),
        sampled_users=known,
        listed=len(recipients),
        share_of_top_10=shown / known if known else None,
        recipients=tuple(recipients[:n]),
    )


def _list_recipients(
    item_id: str, queries: Sequence[Query], recommendations: Sequence[Recommendation]
) -> list[Recipient]:
    recipients = [
        Recipient(query.user_id or "", rank, item.score)
        for query, recommendation in zip(queries, recommendations, strict=True)
        for rank, item in enumerate(recommendation.items, start=1)
        if item.item_id == item_id
    ]
    return sorted(recipients, key=lambda recipient: (recipient.rank, recipient.user_id))
