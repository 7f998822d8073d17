"""The record of the retraining job in the service's database."""

from collections.abc import Collection
from contextlib import suppress
from typing import Any, final

from app.db.clock import ServiceClock
from app.db.database import Database
from app.errors import DatabaseUnavailableError
from app.models.activation import activate_blocking
from app.models.repository import ModelChangeRepository
from app.training_runs.repository import TrainingRunRepository
from model.store.store import BundleStore

_RECENT_CHANGES = 50


@final
class DatabaseJournal:
    """Records a row per run, and activates models with the same record as every other change.

    Every method blocks, and raises `DatabaseUnavailableError` if the database does not answer.
    """

    def __init__(self, store: BundleStore, database: Database, *, actor: str) -> None:
        self._store = store
        self._database = database
        self._clock = ServiceClock()
        database.read_blocking(self._clock.synchronize)
        self._actor = actor

    def now(self) -> int:
        """Return the database's time, epoch microseconds."""
        return self._clock.now()

    def begin(
        self, run_id: str, *, started_at: int, champion: str | None, report: dict[str, Any]
    ) -> None:
        """Record a run as running, and mark every other running one as abandoned."""

        def write(runs: TrainingRunRepository) -> None:
            runs.abandon_running(
                started_at, f"its process ended without a result; {run_id} detected that"
            )
            runs.begin(run_id, started_at=started_at, champion=champion, report=report)

        self._database.write_blocking(lambda session: write(TrainingRunRepository(session)))

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
        """Record the result of a run."""
        self._database.write_blocking(
            lambda session: TrainingRunRepository(session).finish(
                run_id,
                finished_at=finished_at,
                result=result,
                candidate=candidate,
                reason=reason,
                report=report,
            )
        )

    def record_progress(self, run_id: str, progress: dict[str, Any]) -> None:
        """Record how far a run is; nothing while the database does not answer."""
        recorded = {**progress, "updated_at": self._clock.now()}
        with suppress(DatabaseUnavailableError):
            self._database.write_blocking(
                lambda session: TrainingRunRepository(session).record_progress(run_id, recorded)
            )

    def activate(self, version: str, reason: str) -> None:
        """Open a published version, make it the current one and record that, all or nothing."""
        activate_blocking(
            self._store,
            self._database,
            version,
            self._store.open,
            actor=self._actor,
            reason=reason,
            kind="retrain",
        )

    def list_recently_served(self) -> Collection[str]:
        """Read the versions that the latest changes name, as the new or the previous one."""
        changes = self._database.read_blocking(
            lambda session: ModelChangeRepository(session).list_newest(_RECENT_CHANGES)
        )
        named = {version for it in changes for version in (it.version, it.previous_version)}
        return {version for version in named if version is not None}
