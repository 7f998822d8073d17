"""Recorded changes of the served models, and clicks on impressions, in the database."""

from dataclasses import dataclass
from typing import NamedTuple, cast, final

from sqlalchemy import exists, func, select
from sqlalchemy.orm import Session

from app.db.tables import IS_UNCOUNTED, ImpressionCount, ModelChange, StoredRecommendation
from app.models.schemas import ChangeKind
from model.store.traffic import Traffic

MOST_ACTIVATIONS = 2000
"""Activations and rollbacks that decide where a rollback leads: as many rollbacks in a row find
their way back as there are among the latest."""


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
    """Impressions of a version, and how many of them were clicked."""

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
        """Read the latest `MOST_ACTIVATIONS` changes of the current version, oldest first.

        Changes of the traffic are left out.
        """
        columns = (ModelChange.change, ModelChange.version, ModelChange.previous_version)
        of_current = ModelChange.change != "traffic"
        newest = (
            select(*columns)
            .where(of_current)
            .order_by(ModelChange.id.desc())
            .limit(MOST_ACTIVATIONS)
        )
        rows = reversed(self._session.execute(newest).all())
        return [
            Activation(cast(ChangeKind, change), version, previous_version)
            for change, version, previous_version in rows
        ]


class CountDifference(NamedTuple):
    """The kept counts of all impressions, and those of the rows; equal unless one was damaged."""

    kept: ClickCounts
    stored: ClickCounts


@final
class ClickRepository:
    """Reads the counts of impressions and clicks within the caller's transaction."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def count(self, version: str) -> ClickCounts | None:
        """Read the stored impressions of a version and the clicked ones among them.

        None while some of them, from before the counts were kept, are still to be counted.
        """
        uncounted = exists().where(IS_UNCOUNTED, StoredRecommendation.model_version == version)
        of_version = ImpressionCount.model_version == version
        shown, clicked = (
            select(func.coalesce(func.sum(column), 0)).where(of_version).scalar_subquery()
            for column in (ImpressionCount.shown, ImpressionCount.clicked)
        )
        # One statement reads all as of one instant: no more can be clicked than were shown.
        row = self._session.execute(select(shown, clicked, uncounted)).one()
        return None if row[2] else ClickCounts(int(row[0]), int(row[1]))

    def compare_counts(self) -> CountDifference:
        """Compare the kept counts with the rows; reads every impression."""
        kept = select(
            func.coalesce(func.sum(ImpressionCount.shown), 0),
            func.coalesce(func.sum(ImpressionCount.clicked), 0),
        )
        stored = select(func.count(), func.count(StoredRecommendation.clicked_at)).where(
            StoredRecommendation.is_counted
        )
        both = [self._session.execute(statement).one() for statement in (kept, stored)]
        return CountDifference(*(ClickCounts(int(shown), int(clicked)) for shown, clicked in both))


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
