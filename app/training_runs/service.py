"""Retraining runs, for operators and for Prometheus."""

from typing import Any, final

from app.context import AppContext
from app.db.tables import TrainingRun
from app.errors import DatabaseUnavailableError, OverloadedError
from app.http.types import format_instant, format_optional_instant
from app.training_runs.repository import TrainingRunRepository
from app.training_runs.schemas import (
    GateCheck,
    GateDecision,
    TrainingRunList,
    TrainingRunSummary,
)

SECONDS_BETWEEN_COUNTS = 15.0
"""Interval at which a process counts."""


async def list_training_runs(context: AppContext, limit: int) -> TrainingRunList:
    """List the most recent runs, newest first.

    Raises:
        DatabaseUnavailableError: if they cannot be read.
        OverloadedError: if too many requests wait already.
    """
    runs = await context.database.read(
        lambda session: TrainingRunRepository(session).list_newest(limit)
    )
    return TrainingRunList(tuple(_to_response(run) for run in runs))


@final
class TrainingRunCounter:
    """Counts runs by result for Prometheus.

    The job itself is too short-lived to be scraped, so the service counts its rows.
    """

    def __init__(self, context: AppContext) -> None:
        self._context = context
        self._counted: dict[str, int] = {}

    async def count(self) -> None:
        """Raise the counters to the number of rows; without the database they stay unchanged."""
        try:
            counts = await self._context.database.read(
                lambda session: TrainingRunRepository(session).count_by_result()
            )
        except (DatabaseUnavailableError, OverloadedError):
            return
        for result, count in counts.items():
            new = count - self._counted.get(result, 0)
            if new > 0:
                self._context.metrics.training_runs.labels(result).inc(new)
                self._counted[result] = count


def _to_response(run: TrainingRun) -> TrainingRunSummary:
    report: dict[str, Any] = run.report or {}
    comparison, decision = report.get("comparison") or {}, report.get("decision")
    return TrainingRunSummary(
        run_id=run.run_id,
        result=run.result,
        reason=run.reason,
        started_at=format_instant(run.started_at),
        finished_at=format_optional_instant(run.finished_at),
        champion=run.champion,
        candidate=run.candidate,
        recipe=report.get("recipe"),
        questions=comparison.get("questions"),
        metrics=comparison.get("rows"),
        decision=None if decision is None else _to_decision(decision),
    )


def _to_decision(decision: dict[str, Any]) -> GateDecision:
    checks = tuple(
        GateCheck(
            name=check["name"],
            value=check["value"],
            threshold=check["threshold"],
            passed=check["passed"],
            sentence=check["sentence"],
        )
        for check in decision["checks"]
    )
    return GateDecision(decision["promote"], checks)
