"""Counts of the stored events of all items."""

from collections.abc import Collection
from typing import NamedTuple, final

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.db.tables import StoredEvent


class ItemEvents(NamedTuple):
    """The events of one item in one span of time; `last_at` in epoch microseconds."""

    item_id: str
    events: int
    last_at: int


@final
class PopularityRepository:
    """Counts events of all items within a transaction that the caller owns."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def count(
        self, since: int, until: int, width: int, origin: int, ignored_actions: Collection[str]
    ) -> list[ItemEvents]:
        """Count the events per item and span of time.

        Args:
            since: epoch microseconds, included.
            until: epoch microseconds, included.
            width: microseconds of a span.
            origin: start of any span, epoch microseconds.
            ignored_actions: actions whose events are not counted.
        """
        # An offset from a past origin is positive, so that the remainder is on every database.
        offset = StoredEvent.at - origin
        span = offset - offset % width
        conditions = [StoredEvent.at >= since, StoredEvent.at <= until]
        if ignored_actions:
            conditions.append(StoredEvent.action.not_in(list(ignored_actions)))
        rows = self._session.execute(
            select(StoredEvent.item_id, func.count(), func.max(StoredEvent.at))
            .where(*conditions)
            .group_by(span, StoredEvent.item_id)
        )
        return [ItemEvents(*row) for row in rows]
