"""Users as their events show them; there is no other record of a user."""

from typing import final

from app.context import AppContext
from app.events.repository import EventRepository
from app.http.types import format_instant
from app.users.schemas import UserEvent, UserHistory, UserList, UserSummary


@final
class UserService:
    """Lists users and shows their histories."""

    def __init__(self, context: AppContext) -> None:
        self._context = context

    async def list(self, *, prefix: str, limit: int) -> UserList:
        """The first users whose ids start with `prefix`."""
        users = await self._context.database.read(
            lambda session: EventRepository(session).users(prefix, limit)
        )
        return UserList(
            tuple(
                UserSummary(user.user_id, user.events, format_instant(user.last_at))
                for user in users
            )
        )

    async def history(self, user_id: str, *, limit: int) -> UserHistory:
        """The newest events of a user."""
        events = await self._context.database.read(
            lambda session: EventRepository(session).newest(user_id, limit)
        )
        return UserHistory(
            user_id,
            tuple(
                UserEvent(
                    event_id=event.event_id,
                    item_id=event.item_id,
                    action=event.action,
                    timestamp=format_instant(event.at),
                    value=event.value,
                    recommendation_id=event.recommendation_id,
                    properties=event.properties,
                )
                for event in events
            ),
        )
