"""Runs of the retraining job in the database."""

from collections.abc import Sequence
from typing import Any, final

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from app.db.tables import TrainingRun

RUNNING = "running"
ABANDONED = "abandoned"


@final
class TrainingRunRepository:
    """Reads and writes runs within one transaction, which belongs to the caller."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def begin(
        self, run_id: str, *, started_at: int, champion: str | None, report: dict[str, Any]
    ) -> None:
        """Record that a run is going on."""
        self._session.add(
            TrainingRun(
                run_id=run_id,
                started_at=started_at,
                finished_at=None,
                result=RUNNING,
                champion=champion,
                candidate=None,
                reason=None,
                report=report,
            )
        )

    def abandon_running(self, at: int, reason: str) -> int:
        """Give up whatever is recorded as going on; answers how many runs that was.

        Only who holds the lock may: nothing can really be going on then.
        """
        abandoned = self._session.execute(
            update(TrainingRun)
            .where(TrainingRun.result == RUNNING)
            .values(result=ABANDONED, finished_at=at, reason=reason)
            .returning(TrainingRun.run_id)
        )
        return len(abandoned.all())

    def finish(
        self,
        run_id: str,
        *,
        finished_at: int,
        result: str,
        candidate: str | None,
        reason: str | None,
        report: dict[str, Any],
    ) -> None:
        """Record what came of a run."""
        self._session.execute(
            update(TrainingRun)
            .where(TrainingRun.run_id == run_id)
            .values(
                finished_at=finished_at,
                result=result,
                candidate=candidate,
                reason=reason,
                report=report,
            )
        )

    def newest(self, limit: int) -> Sequence[TrainingRun]:
        """The most recent runs, newest first."""
        order = (TrainingRun.started_at.desc(), TrainingRun.run_id.desc())
        return self._session.scalars(select(TrainingRun).order_by(*order).limit(limit)).all()

    def counts(self) -> dict[str, int]:
        """How many runs came to each result; those still going on came to none."""
        counted = self._session.execute(
            select(TrainingRun.result, func.count().label("runs"))
            .where(TrainingRun.result != RUNNING)
            .group_by(TrainingRun.result)
        )
        return {row.result: row.runs for row in counted}
