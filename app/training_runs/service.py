"""Retraining runs, for operators and for Prometheus."""

from typing import Any

from app.context import AppContext
from app.db.tables import TrainingRun
from app.errors import DatabaseUnavailableError, OverloadedError
from app.http.types import format_instant, format_optional_instant
from app.training_runs.repository import RUNNING, TrainingRunRepository
from app.training_runs.schemas import (
    GateCheck,
    GateDecision,
    TrainingRunList,
    TrainingRunProgress,
    TrainingRunSummary,
)

SECONDS_BETWEEN_COUNTS = 15.0
"""Interval at which a process counts."""


STALLED_SECONDS = 600
"""A run that was killed stays recorded as running; after so long it no longer shows progress."""


async def list_training_runs(context: AppContext, limit: int) -> TrainingRunList:
    """List the most recent runs, newest first.

    Raises:
        DatabaseUnavailableError: if they cannot be read.
        OverloadedError: if too many requests wait already.
    """
    runs = await context.database.read(
        lambda session: TrainingRunRepository(session).list_newest(limit)
    )
    now = context.clock.now()
    return TrainingRunList(tuple(_to_response(run, now) for run in runs))


async def count_training_runs(context: AppContext) -> None:
    """Raise the counters of runs to the number of rows; unchanged while there is no database.

    The job itself is too short-lived to be scraped, so the service counts its rows. What is counted
    is read from the counters: those of a worker continue where the worker that it replaces ended.
    """
    try:
        counts = await context.database.read(
            lambda session: TrainingRunRepository(session).count_by_result()
        )
    except (DatabaseUnavailableError, OverloadedError):
        return
    counter = context.metrics.training_runs
    counted = {
        sample.labels["result"]: sample.value
        for family in counter.collect()
        for sample in family.samples
        if sample.name.endswith("_total")
    }
    for result, count in counts.items():
        new = count - counted.get(result, 0)
        if new > 0:
            counter.labels(result).inc(new)


def _to_response(run: TrainingRun, now: int) -> TrainingRunSummary:
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
        progress=_to_progress(run, now),
    )


def _to_progress(run: TrainingRun, now: int) -> TrainingRunProgress | None:
    """Present the progress of a run that is running, if it is recent."""
    progress: dict[str, Any] | None = (run.report or {}).get("progress")
    if run.result != RUNNING or progress is None:
        return None
    if now - progress["updated_at"] > STALLED_SECONDS * 1_000_000:
        return None
    return TrainingRunProgress(**{**progress, "updated_at": format_instant(progress["updated_at"])})


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
