"""Finding the history that a request is about."""

from typing import NamedTuple, final

from app.context import AppContext
from app.errors import UnprocessableError
from app.events.repository import EventRepository
from app.histories.schemas import HistoryRequest, InlineEvent, InstantRequest
from model.clock import now
from model.history import Event, Query
from model.inference.predictor import Predictor


class FoundHistory(NamedTuple):
    """A history as of an instant.

    Attributes:
        query: the history and the instant.
        warnings: what the caller should know of it, as stable codes.
    """

    query: Query
    warnings: tuple[str, ...]


@final
class HistoryService:
    """Reads histories, and says which bundle answers whoever they belong to."""

    def __init__(self, context: AppContext) -> None:
        self._context = context

    async def bundle(self, asked: HistoryRequest) -> Predictor:
        """The bundle that answers a request.

        Raises:
            NoModelError: if no bundle is being served.
            ModelNotFoundError: if the request insists on a version that is not published.
            ModelRefusedError: if it insists on one that cannot be opened.
        """
        serving = self._context.model_manager
        if asked.model_version is not None:
            return await serving.open_version(asked.model_version)
        return serving.select_for_user(asked.user_id)

    async def read_at_instant(self, asked: InstantRequest) -> FoundHistory:
        """The history of a request as of the instant it is about: `query.query_time`.

        Raises:
            UnprocessableError, DatabaseUnavailableError, OverloadedError: as `read` does.
        """
        query_time = now() if asked.query_time is None else asked.query_time
        return await self.read(asked, query_time, query_time_withheld=asked.query_time_withheld)

    async def read(
        self, asked: HistoryRequest, query_time: int, *, query_time_withheld: bool = False
    ) -> FoundHistory:
        """The history of a request as of an instant (epoch microseconds).

        Raises:
            UnprocessableError: if the inline history is longer than this service allows.
            DatabaseUnavailableError: if the history is stored, and cannot be read.
            OverloadedError: if too many requests wait already.
        """
        with self._context.metrics.stage("history"):
            inline = self._inline(asked)
            stored = await self._stored(asked, query_time)
            query = Query.as_of(
                _join(stored, inline),
                query_time,
                user_id=asked.user_id,
                query_time_withheld=query_time_withheld,
            )
        is_late = any(event.at > query_time for event in inline)
        return FoundHistory(query, ("events_after_query_time",) if is_late else ())

    def _inline(self, asked: HistoryRequest) -> list[Event]:
        sent: list[InlineEvent] = asked.history or []
        longest = self._context.settings.max_history
        if len(sent) > longest:
            raise UnprocessableError(
                f"an inline history holds at most {longest} events, but this one has {len(sent)}; "
                "send the most recent ones"
            )
        events = (Event(event.item_id, event.timestamp, event.action) for event in sent)
        # As in the store, what is told twice happened once.
        return list(dict.fromkeys(events))

    async def _stored(self, asked: HistoryRequest, query_time: int) -> list[Event]:
        user_id = asked.user_id
        if user_id is None or (asked.history is not None and not asked.merge):
            return []
        longest = self._context.settings.max_history
        return await self._context.database.read(
            lambda session: EventRepository(session).history(user_id, query_time, longest)
        )


def _join(stored: list[Event], inline: list[Event]) -> list[Event]:
    """Both histories, with what is in both once: a client may send what it has just ingested."""
    if not stored:
        return inline
    known = set(stored)
    return stored + [event for event in inline if event not in known]
