"""Changes of what is served, and what came of what was shown, in the database."""

from collections.abc import Sequence
from typing import NamedTuple, cast, final

from sqlalchemy import ColumnElement, exists, func, select
from sqlalchemy.orm import Session

from app.db.tables import ModelChange, StoredEvent, StoredRecommendation
from app.models.changes import Change, Kind
from model.store.traffic import Traffic


class ShownAndClicked(NamedTuple):
    """How many answers of a version were shown, and how many of those led to an event."""

    shown: int
    clicked: int


@final
class ModelChangeRepository:
    """Reads and adds changes within one transaction, which belongs to the caller."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, change: Change) -> None:
        """Write a change down."""
        self._session.add(
            ModelChange(
                at=change.at,
                actor=change.actor,
                change=change.change,
                version=change.version,
                previous_version=change.previous_version,
                reason=change.reason,
                detail=None if change.traffic is None else change.traffic.model_dump(mode="json"),
            )
        )
        self._session.flush()

    def newest(self, limit: int) -> list[Change]:
        """The most recent changes, newest first."""
        return _changes(
            self._session.scalars(
                select(ModelChange).order_by(ModelChange.id.desc()).limit(limit)
            ).all()
        )

    def all(self) -> list[Change]:
        """Every change ever made, oldest first."""
        return _changes(self._session.scalars(select(ModelChange).order_by(ModelChange.id)).all())


@final
class ClickRepository:
    """Counts what came of what was shown, within a transaction that belongs to the caller."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def of(self, version: str) -> ShownAndClicked:
        """What came of the answers of a version that are still remembered.

        An answer was clicked if an event names both it and an item that it showed.
        """
        of_version = StoredRecommendation.model_version == version
        shown = self._session.scalar(
            select(func.count()).select_from(StoredRecommendation).where(of_version)
        )
        clicked = self._session.scalar(
            select(func.count(StoredEvent.recommendation_id.distinct()))
            .join(
                StoredRecommendation,
                StoredRecommendation.recommendation_id == StoredEvent.recommendation_id,
            )
            .where(of_version, self._showed_the_item())
        )
        return ShownAndClicked(shown or 0, clicked or 0)

    def _showed_the_item(self) -> ColumnElement[bool]:
        is_sqlite = self._session.get_bind().dialect.name == "sqlite"
        elements = func.json_each if is_sqlite else func.json_array_elements_text
        item = elements(StoredRecommendation.item_ids).table_valued("value")
        return exists().select_from(item).where(item.c.value == StoredEvent.item_id)


def _changes(stored: Sequence[ModelChange]) -> list[Change]:
    return [
        Change(
            at=change.at,
            actor=change.actor,
            change=cast(Kind, change.change),
            version=change.version,
            previous_version=change.previous_version,
            reason=change.reason,
            traffic=(
                Traffic.model_validate(change.detail)
                if change.change == "traffic" and change.detail is not None
                else None
            ),
        )
        for change in stored
    ]
