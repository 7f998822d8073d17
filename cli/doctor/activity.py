"""Checks of recent activity: events arrive, and retraining produces results."""

from app.db.tables import TrainingRun
from app.http.types import format_instant
from app.models.repository import CountDifference
from cli.doctor.check import Check, failure, ok, warning
from model.clock import MICROSECONDS_PER_DAY

_MAX_EVENT_AGE_DAYS = 1.0
_MAX_RUN_DAYS = 1.0


def check_events(newest: int | None, at: int) -> Check:
    """Check when the newest event arrived; both instants in epoch microseconds."""
    if newest is None:
        return warning("events", "no event is stored", "POST /v1/events, or kairos import-events")
    days = (at - newest) / MICROSECONDS_PER_DAY
    finding = f"the newest event arrived {days:.2f} days ago"
    if days > _MAX_EVENT_AGE_DAYS:
        return warning("events", finding, "check the senders, and /metrics for rejected requests")
    return ok("events", finding)


def check_clicks(counts: CountDifference) -> Check:
    """Check that the kept counts of impressions and clicks equal the stored rows."""
    kept, stored = counts
    if kept == stored:
        return ok("clicks", f"{kept.shown} impressions and {kept.clicked} clicks are counted")
    return failure(
        "clicks",
        f"{kept.shown} impressions and {kept.clicked} clicks are counted, but {stored.shown} and "
        f"{stored.clicked} are stored: click rates are wrong",
        "restore the last backup, or see the runbook to count again",
    )


def check_retraining(runs: list[TrainingRun], at: int) -> Check:
    """Check the result of the last run; `runs` are newest first."""
    if not runs:
        return warning("retraining", "no run is recorded", "run kairos retrain, on a schedule")
    last = runs[0]
    finding = f"{last.run_id}, started {format_instant(last.started_at)}: {last.result}"
    if last.result == "running":
        if (at - last.started_at) / MICROSECONDS_PER_DAY > _MAX_RUN_DAYS:
            return warning("retraining", finding, "check whether it still runs; then run it again")
    elif last.result in {"failed", "abandoned"}:
        reason = "" if last.reason is None else f" ({last.reason})"
        remedy = "see its report, and run kairos retrain again"
        return warning("retraining", finding + reason, remedy)
    return ok("retraining", finding)
