"""Clicks: events that lead back to an impression and to an item that it showed."""

from collections.abc import Collection, Sequence

from sqlalchemy import ColumnElement, and_, exists, func, or_, select, text, update
from sqlalchemy.orm import InstrumentedAttribute, Session

from app.db.tables import StoredEvent, StoredRecommendation

_COUNTS_LOCK = int.from_bytes(b"clicks")
"""Key of the advisory lock that the triggers of migration 0005 take."""

_BATCH = 10_000
"""Ids of one statement; SQLite allows 32,766 parameters."""


def lock_click_counts(session: Session) -> None:
    """Wait until no other transaction counts clicks, and keep others out until this one ends.

    The triggers take the same lock after the events of a statement are inserted. A transaction that
    inserts clicks takes it before: one that waits for it must hold no event that others wait for.
    """
    # On SQLite a writing transaction is exclusive from its beginning.
    if session.get_bind().dialect.name == "postgresql":
        session.execute(text(f"SELECT pg_advisory_xact_lock({_COUNTS_LOCK})"))


def match_click(session: Session) -> ColumnElement[bool]:
    """Match an event with the impression that it clicks.

    The event names the impression and an item that it showed, and is of the user that it was shown
    to; an impression without a user may be clicked by anybody. The triggers of migration 0005
    apply the same rule.
    """
    is_sqlite = session.get_bind().dialect.name == "sqlite"
    elements = func.json_each if is_sqlite else func.json_array_elements_text
    item = elements(StoredRecommendation.item_ids).table_valued("value")
    return and_(
        StoredEvent.recommendation_id == StoredRecommendation.recommendation_id,
        or_(
            StoredRecommendation.user_id.is_(None),
            StoredRecommendation.user_id == StoredEvent.user_id,
        ),
        exists().select_from(item).where(item.c.value == StoredEvent.item_id),
    )


def list_clicked_versions(
    session: Session, column: InstrumentedAttribute[str], values: Collection[str]
) -> tuple[str, ...]:
    """List the version of the clicked impression of each click, by a column of either table."""
    if not values:
        return ()
    clicks = (
        select(StoredRecommendation.model_version)
        .join(StoredEvent, match_click(session))
        .where(column.in_(values))
    )
    return tuple(session.scalars(clicks))


def reset_clicks(session: Session, *conditions: ColumnElement[bool]) -> Sequence[str]:
    """Count the impressions that some events name as not clicked, before these events are deleted.

    On SQLite a trigger looks for another click of the impression for each deleted event, among all
    that name it: for thousands of events of one impression that takes minutes. It passes over those
    that are not clicked. PostgreSQL's trigger looks once for each impression: nothing to do there.

    Returns:
        The ids of the impressions, for `find_clicks`.
    """
    if session.get_bind().dialect.name != "sqlite":
        return ()
    named = select(StoredEvent.recommendation_id).where(
        *conditions, StoredEvent.recommendation_id.is_not(None)
    )
    statement = (
        update(StoredRecommendation)
        .where(
            StoredRecommendation.recommendation_id.in_(named),
            StoredRecommendation.clicked_at.is_not(None),
        )
        .values(clicked_at=None)
        .returning(StoredRecommendation.recommendation_id)
    )
    return session.scalars(statement, execution_options={"synchronize_session": False}).all()


def find_clicks(session: Session, recommendation_ids: Sequence[str]) -> None:
    """Find a click of each impression again, among the events that are left."""
    click = (
        select(StoredEvent.at)
        .where(match_click(session))
        .limit(1)
        .correlate(StoredRecommendation)
        .scalar_subquery()
    )
    for begin in range(0, len(recommendation_ids), _BATCH):
        batch = recommendation_ids[begin : begin + _BATCH]
        session.execute(
            update(StoredRecommendation)
            .where(StoredRecommendation.recommendation_id.in_(batch))
            .values(clicked_at=click),
            execution_options={"synchronize_session": False},
        )
