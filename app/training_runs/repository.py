"""Retraining runs in the database."""

from collections.abc import Sequence
from typing import Any, final

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from app.db.tables import TrainingRun

RUNNING = "running"
ABANDONED = "abandoned"


@final
class TrainingRunRepository:
    """Reads and writes runs within the caller's transaction."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def begin(
        self, run_id: str, *, started_at: int, champion: str | None, report: dict[str, Any]
    ) -> None:
        """Add a run that is running."""
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
        """Mark every running run as abandoned; return their number.

        Only for the holder of the retraining lock: no other run can then really be running.
        """
        abandoned = self._session.execute(
            update(TrainingRun)
            .where(TrainingRun.result == RUNNING)
            .values(result=ABANDONED, finished_at=at, reason=reason)
            .returning(TrainingRun.run_id)
        )
        return len(abandoned.all())

    def record_progress(self, run_id: str, progress: dict[str, Any]) -> None:
        """Store how far a running run is, in its report; the result replaces it."""
        run = self._session.get(TrainingRun, run_id)
        if run is not None and run.result == RUNNING:
            run.report = {**(run.report or {}), "progress": progress}

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
        """Store the result of a run."""
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

    def list_newest(self, limit: int) -> Sequence[TrainingRun]:
        """List the most recent runs, newest first."""
        order = (TrainingRun.started_at.desc(), TrainingRun.run_id.desc())
        return self._session.scalars(select(TrainingRun).order_by(*order).limit(limit)).all()

    def count_by_result(self) -> dict[str, int]:
        """Count the finished or abandoned runs by result."""
        counted = self._session.execute(
            select(TrainingRun.result, func.count().label("runs"))
            .where(TrainingRun.result != RUNNING)
            .group_by(TrainingRun.result)
        )
        return {row.result: row.runs for row in counted}
