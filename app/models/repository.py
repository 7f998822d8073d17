"""Recorded changes of the served models, and clicks on impressions, in the database."""

from dataclasses import dataclass
from typing import NamedTuple, cast, final

from sqlalchemy import ColumnElement, exists, func, select
from sqlalchemy.orm import Session

from app.db.tables import ModelChange, StoredEvent, StoredRecommendation
from app.models.schemas import ChangeKind
from model.store.traffic import Traffic


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the served models.

    Attributes:
        at: epoch microseconds, UTC.
        actor: the author: a caller's name, or `cli:` and a user of the machine.
        change: the kind; only "traffic" leaves the current version as it is.
        version: the current version after the change.
        previous_version: the current version before it, as read from the store.
        reason: as the actor gave it.
        traffic: the challenger and the shadow from then on; None unless the kind is "traffic".
    """

    at: int
    actor: str
    change: ChangeKind
    version: str | None
    previous_version: str | None
    reason: str | None
    traffic: Traffic | None = None


class Activation(NamedTuple):
    """The part of a change that decides which version a rollback activates."""

    change: ChangeKind
    version: str | None
    previous_version: str | None


class ClickCounts(NamedTuple):
    """Impressions of a version, and how many of them led to an event."""

    shown: int
    clicked: int


@final
class ModelChangeRepository:
    """Reads and adds changes within the caller's transaction."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, change: Change) -> None:
        """Store a change."""
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

    def list_newest(self, limit: int) -> list[Change]:
        """Read the most recent changes, newest first."""
        newest = select(ModelChange).order_by(ModelChange.id.desc()).limit(limit)
        return [_to_change(stored) for stored in self._session.scalars(newest)]

    def list_activations(self) -> list[Activation]:
        """Read every change of the current version, oldest first, without changes of the traffic.

        Reads three columns only, because the record grows without limit.
        """
        columns = (ModelChange.change, ModelChange.version, ModelChange.previous_version)
        of_current = ModelChange.change != "traffic"
        rows = self._session.execute(select(*columns).where(of_current).order_by(ModelChange.id))
        return [
            Activation(cast(ChangeKind, change), version, previous_version)
            for change, version, previous_version in rows
        ]


@final
class ClickRepository:
    """Counts impressions and clicks within the caller's transaction."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def count(self, version: str) -> ClickCounts:
        """Count the recorded impressions of a version, and the clicked ones among them.

        An impression is clicked if an event names both it and an item that it showed.
        """
        of_version = StoredRecommendation.model_version == version
        shown = select(func.count()).select_from(StoredRecommendation).where(of_version)
        clicked = (
            select(func.count(StoredEvent.recommendation_id.distinct()))
            .join(
                StoredRecommendation,
                StoredRecommendation.recommendation_id == StoredEvent.recommendation_id,
            )
            .where(of_version, self._match_shown_item())
        )
        # One statement counts both as of one instant: no more can be clicked than were shown.
        counts = select(shown.scalar_subquery(), clicked.scalar_subquery())
        return ClickCounts(*self._session.execute(counts).one())

    def _match_shown_item(self) -> ColumnElement[bool]:
        is_sqlite = self._session.get_bind().dialect.name == "sqlite"
        elements = func.json_each if is_sqlite else func.json_array_elements_text
        item = elements(StoredRecommendation.item_ids).table_valued("value")
        return exists().select_from(item).where(item.c.value == StoredEvent.item_id)


def _to_change(stored: ModelChange) -> Change:
    has_traffic = stored.change == "traffic" and stored.detail is not None
    return Change(
        at=stored.at,
        actor=stored.actor,
        change=cast(ChangeKind, stored.change),
        version=stored.version,
        previous_version=stored.previous_version,
        reason=stored.reason,
        traffic=Traffic.model_validate(stored.detail) if has_traffic else None,
    )
