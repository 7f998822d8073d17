"""What goes on: do events arrive, and does retraining come to a result?"""

from app.db.tables import TrainingRun
from app.http.types import format_instant
from cli.doctor_checks.check import Check, doubtful, well
from model.clock import MICROSECONDS_PER_DAY

_QUIET_DAYS = 1.0
_LONG_DAYS = 1.0


def check_of_events(newest: int | None, at: int) -> Check:
    """Whether events arrive: when the last one did, epoch microseconds."""
    if newest is None:
        return doubtful("events", "none is stored yet", "POST /v1/events, or kairos import-events")
    days = (at - newest) / MICROSECONDS_PER_DAY
    told = f"the last one arrived {days:.2f} days ago"
    if days > _QUIET_DAYS:
        return doubtful("events", told, "see whether those who send them are refused: /metrics")
    return well("events", told)


def check_of_retraining(runs: list[TrainingRun], at: int) -> Check:
    """How the last run went; newest first."""
    if not runs:
        return doubtful("retraining", "no run is recorded", "run kairos retrain, on a schedule")
    last = runs[0]
    told = f"{last.run_id}, begun {format_instant(last.started_at)}: {last.result}"
    if last.result == "running":
        if (at - last.started_at) / MICROSECONDS_PER_DAY > _LONG_DAYS:
            return doubtful("retraining", told, "see whether it still runs; then run it again")
    elif last.result in {"failed", "abandoned"}:
        why = "" if last.reason is None else f" ({last.reason})"
        return doubtful("retraining", told + why, "see its report, and run kairos retrain again")
    return well("retraining", told)
