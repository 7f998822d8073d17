"""The first steps of every model request: choose the predictor, and read the history."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from app.context import AppContext
from app.db.events import EventRepository, SeenItems
from app.errors import UnprocessableError
from app.histories.schemas import HistoryRequest, InstantRequest
from model.history import Event, Query
from model.inference.predictor import Predictor
from model.inference.sweep import HistoryLimits

MOST_SEEN_EVENTS = 10_000
"""Most stored events of a user whose items are left out as seen: bounds the query's time."""


class RequestedQuery(NamedTuple):
    """The query of a request.

    Attributes:
        query: the history and the query time.
        warnings: stable codes for the response, such as "events_after_query_time".
    """

    query: Query
    warnings: tuple[str, ...]


async def select_predictor(context: AppContext, request: HistoryRequest) -> Predictor:
    """Select the predictor of a request: a pinned version, or the one active for the user.

    Raises:
        NoModelError: if no model is active.
        ModelNotFoundError: if the request pins a version that is not published.
        ModelRefusedError: if it pins a version that cannot be opened.
    """
    if request.model_version is not None:
        return await context.model_manager.open_version(request.model_version)
    return context.model_manager.select_for_user(request.user_id)


async def read_instant_query(context: AppContext, request: InstantRequest) -> RequestedQuery:
    """Read the query of a request for one instant; its query time is now by default.

    Raises:
        UnprocessableError, DatabaseUnavailableError, OverloadedError: as `read_query` does.
    """
    query_time = context.clock.now() if request.query_time is None else request.query_time
    return await read_query(
        context, request, query_time, query_time_withheld=request.query_time_withheld
    )


async def read_sweep_query(
    context: AppContext,
    request: HistoryRequest,
    query_times: Sequence[int],
    *,
    needs_seen_items: bool,
    query_time_withheld: bool = False,
) -> tuple[RequestedQuery, HistoryLimits]:
    """Read one history for many query times (epoch microseconds), and what each may use of it.

    A stored history has all that requests for the query times, one by one, would have read. Where
    an inline history is merged into it, a query time may read more of it than such a request.

    Args:
        needs_seen_items: also read the older events whose items are left out as seen.

    Raises:
        UnprocessableError, DatabaseUnavailableError, OverloadedError: as `read_query` does.
    """
    most = context.settings.max_history
    longest = max(most, MOST_SEEN_EVENTS) if needs_seen_items else most

    def read_stored(events: EventRepository, user_id: str) -> list[Event]:
        return events.read_histories(user_id, query_times, longest)

    requested = await _read_query(
        context,
        request,
        max(query_times),
        read_stored,
        query_time_withheld=query_time_withheld,
    )
    added = len(request.history or ())
    return requested, HistoryLimits(read=most + added, seen=longest + added)


async def read_query(
    context: AppContext,
    request: HistoryRequest,
    query_time: int,
    *,
    query_time_withheld: bool = False,
) -> RequestedQuery:
    """Read the history of a request up to the query time (epoch microseconds).

    Raises:
        UnprocessableError: if the inline history is longer than the settings allow.
        DatabaseUnavailableError: if the history is stored and cannot be read.
        OverloadedError: if too many requests are waiting.
    """

    def read_stored(events: EventRepository, user_id: str) -> list[Event]:
        return events.read_history(user_id, query_time, context.settings.max_history)

    return await _read_query(
        context, request, query_time, read_stored, query_time_withheld=query_time_withheld
    )


async def _read_query(
    context: AppContext,
    request: HistoryRequest,
    query_time: int,
    read_stored: Callable[[EventRepository, str], list[Event]],
    *,
    query_time_withheld: bool = False,
) -> RequestedQuery:
    with context.metrics.time_stage("history"):
        inline = _read_inline_events(request, context.settings.max_history)
        stored: list[Event] = []
        user_id = request.user_id
        if user_id is not None and (request.history is None or request.merge):
            stored = await context.database.read(
                lambda session: read_stored(EventRepository(session), user_id)
            )
        query = Query.as_of(
            # Events in both count once: a client may send what it just stored.
            stored + inline,
            query_time,
            user_id=user_id,
            query_time_withheld=query_time_withheld,
        )
    is_late = any(event.at > query_time for event in inline)
    return RequestedQuery(query, ("events_after_query_time",) if is_late else ())


async def read_older_items(context: AppContext, request: HistoryRequest, query: Query) -> SeenItems:
    """Read the items of a user's stored events, if a history does not hold all of these events.

    Raises:
        DatabaseUnavailableError: if they cannot be read.
        OverloadedError: if too many requests are waiting.
    """
    user_id = request.user_id
    is_stored = request.history is None or request.merge
    if user_id is None or not is_stored or len(query.history) < context.settings.max_history:
        return SeenItems(frozenset(), is_complete=True)
    with context.metrics.time_stage("history"):
        return await context.database.read(
            lambda session: EventRepository(session).list_seen_items(
                user_id, query.query_time, MOST_SEEN_EVENTS
            )
        )


def _read_inline_events(request: HistoryRequest, max_events: int) -> list[Event]:
    inline = request.history or []
    if len(inline) > max_events:
        raise UnprocessableError(
            f"an inline history holds at most {max_events} events, but this one has {len(inline)}; "
            "send the most recent ones"
        )
    return inline
