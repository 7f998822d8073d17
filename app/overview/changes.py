"""The users whose recommended items change the most between two instants."""

from collections.abc import Sequence

from app.context import AppContext
from app.histories.schemas import HistoryRequest
from app.histories.service import select_predictor
from app.http.types import format_instant
from app.overview.cohort import read_queries, recommend_to_each, sample_users
from app.overview.schemas import ChangedUser, ChangedUsers
from model.clock import LAST_INSTANT, MICROSECONDS_PER_DAY
from model.history import Query
from model.inference.answers import Recommendation

COMPARED_ITEMS = 10
PERSISTENCE = 0.9
"""Weight of each rank relative to the one before it, in rank-biased overlap."""
_DEFAULT_DAYS = 30


async def find_changed_users(
    context: AppContext,
    *,
    prefix: str,
    at: int | None,
    until: int | None,
    users: int,
    n: int,
    model_version: str | None,
) -> ChangedUsers:
    """Compare the ten best items of sampled users at two instants; the most changed come first.

    The sample is of the earlier instant. At each instant no later event is read.

    Args:
        at: epoch microseconds; None for the end of the model's training data.
        until: None for 30 days later.
        users: of the sample.
        n: of the answer.

    Raises:
        NoModelError: if no model is active.
        ModelNotFoundError: if the request pins a version that is not published.
        ModelRefusedError: if it pins a version that cannot be opened.
        DatabaseUnavailableError: if the events cannot be read.
        OverloadedError: if too many requests are waiting.
    """
    predictor = await select_predictor(context, HistoryRequest(model_version=model_version))
    at = predictor.bundle.manifest.data_window.last_at if at is None else at
    if until is None:
        until = min(at + _DEFAULT_DAYS * MICROSECONDS_PER_DAY, LAST_INSTANT)
    async with context.overviews.take_turn():
        sampled = await sample_users(context, prefix=prefix, at=min(at, until), users=users)
        first = await read_queries(context, sampled, at)
        second = await read_queries(context, sampled, until)
    both = await recommend_to_each(context, predictor, [*first, *second], COMPARED_ITEMS)
    compared = [
        _compare(queries, recommendations)
        for *queries, recommendations in zip(
            first, second, zip(both[: len(first)], both[len(first) :], strict=True), strict=True
        )
        # Without an event that the model knows there is nothing of the user to change.
        if not any(recommendation.fallback for recommendation in recommendations)
    ]
    compared.sort(key=lambda user: (-user.change, user.user_id))
    return ChangedUsers(
        model_version=predictor.version,
        at=format_instant(at),
        until=format_instant(until),
        compared_users=len(compared),
        users=tuple(compared[:n]),
    )


def _compare(
    queries: Sequence[Query], recommendations: tuple[Recommendation, Recommendation]
) -> ChangedUser:
    before, after = ([item.item_id for item in one.items] for one in recommendations)
    earlier, later = sorted(queries, key=lambda query: query.query_time)
    return ChangedUser(
        user_id=queries[0].user_id or "",
        change=round(1 - compute_rank_biased_overlap(before, after), 6),
        entered=len(set(after) - set(before)),
        left=len(set(before) - set(after)),
        events=recommendations[0].history_used,
        events_between=sum(event.at > earlier.query_time for event in later.history),
    )


def compute_rank_biased_overlap(first: Sequence[str], second: Sequence[str]) -> float:
    """Compute how much two rankings agree, the more the higher the rank: 1 if they are equal.

    The mean over the depths of the longer ranking of the share of items that both have up to that
    depth; a depth counts `PERSISTENCE` times the one before (Webber et al. 2010, cut off and
    divided by its largest value).
    """
    depth = max(len(first), len(second))
    if not depth:
        return 1.0
    weights = [PERSISTENCE**number for number in range(depth)]
    agreements = [
        len({*first[:end]} & {*second[:end]}) / max(len(first[:end]), len(second[:end]))
        for end in range(1, depth + 1)
    ]
    agreed = sum(weight * agreement for weight, agreement in zip(weights, agreements, strict=True))
    return agreed / sum(weights)
