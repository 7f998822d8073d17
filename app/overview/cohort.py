"""A sample of users with stored events, and what a model recommends to each of them."""

from collections.abc import Sequence

from app.context import AppContext
from app.db.events import EventRepository
from model.history import Query
from model.inference.answers import Constraints, Recommendation
from model.inference.predictor import Predictor
from model.inference.steps import Steps, start
from model.inference.workload import add_workloads, count_recommendation

MOST_USERS = 200
"""Users of a sample, at most: to recommend to them takes seconds of one processor."""
DEFAULT_USERS = 50
USERS_PER_READ = 50


async def sample_users(context: AppContext, *, prefix: str, at: int, users: int) -> list[str]:
    """Sample the users whose last event up to an instant is the most recent, the latest first.

    Read within a turn of `AppContext.overviews`, as the other functions that read here.

    Args:
        prefix: of their ids.
        at: epoch microseconds; later events are not read.
        users: how many, at most. There are fewer if these are few among the latest events.

    Raises:
        DatabaseUnavailableError: if the events cannot be read.
        OverloadedError: if too many requests are waiting.
    """
    return await context.database.read(
        lambda session: EventRepository(session).list_latest_users(at, prefix, users)
    )


async def read_queries(context: AppContext, user_ids: Sequence[str], at: int) -> list[Query]:
    """Read the histories of users up to an instant, which is their query time.

    Raises:
        DatabaseUnavailableError: if the events cannot be read.
        OverloadedError: if too many requests are waiting.
    """
    queries: list[Query] = []
    max_history = context.settings.max_history
    for first in range(0, len(user_ids), USERS_PER_READ):
        page = user_ids[first : first + USERS_PER_READ]
        # A transaction for each page, so that none holds its connection for long.
        histories = await context.database.read(
            lambda session, page=page: [  # type: ignore[misc]
                EventRepository(session).read_history(user_id, at, max_history) for user_id in page
            ]
        )
        queries += [
            Query.as_of(history, at, user_id=user_id)
            for user_id, history in zip(page, histories, strict=True)
        ]
    return queries


async def recommend_to_each(
    context: AppContext, predictor: Predictor, queries: Sequence[Query], n: int
) -> list[Recommendation]:
    """Recommend items for each of some queries, as one call of the cost of all of them.

    Items of the histories, and those that are unavailable at the query time, are left out, and no
    popular items fill up.

    Args:
        n: items of each recommendation.

    Raises:
        OverloadedError: if too many requests are waiting.
        OverShareError: if too many of this caller are, given that others are.
        DisconnectedError: if the client disconnects before the last one.
    """
    bundle = predictor.bundle
    workload = add_workloads(
        count_recommendation(bundle, len(query.history), n) for query in queries
    )
    return await context.infer(
        predictor, workload, start(lambda: _recommend(context, predictor, queries, n))
    )


def _recommend(
    context: AppContext, predictor: Predictor, queries: Sequence[Query], n: int
) -> Steps[list[Recommendation]]:
    overlay = context.item_overlay.get_view(predictor.version, predictor.catalog)
    recommendations: list[Recommendation] = []
    allowed_at = {}
    for query in queries:
        if query.query_time not in allowed_at:
            allowed_at[query.query_time] = overlay.select_allowed(query.query_time)
        constraints = Constraints(n=n, strict=True, allowed=allowed_at[query.query_time])
        recommendations.append((yield from predictor.recommend_in_steps(query, constraints)))
        yield
    return recommendations
