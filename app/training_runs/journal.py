"""The records of the retraining job in the service's database; the job itself knows no database."""

from collections.abc import Collection
from typing import Any, final

from app.db.database import Database
from app.models.ledger import Ledger
from app.models.repository import ModelChangeRepository
from app.training_runs.repository import TrainingRunRepository
from model.store.store import BundleStore

_REMEMBERED_CHANGES = 50


@final
class DatabaseJournal:
    """A row per run, and the record of changes kept as for every other change of the model.

    Everything here blocks, and raises `DatabaseUnavailableError` where the database is away.
    """

    def __init__(self, store: BundleStore, database: Database, *, actor: str) -> None:
        self._store = store
        self._database = database
        self._ledger = Ledger(store, database)
        self._actor = actor

    def begin(
        self, run_id: str, *, started_at: int, champion: str | None, report: dict[str, Any]
    ) -> None:
        """Record that a run is going on, and that any other has died."""

        def write(runs: TrainingRunRepository) -> None:
            runs.abandon_running(
                started_at, f"its process ended without a result; {run_id} found it so"
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
        """Record what came of it."""
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

    def activate(self, version: str, reason: str) -> None:
        """Open a published version, make it the current one, and record that: all, or nothing."""
        self._ledger.activate(
            version, self._store.open, actor=self._actor, reason=reason, change="retrain"
        )

    def served_lately(self) -> Collection[str]:
        """The versions that the latest changes name, from or to."""
        changes = self._database.read_blocking(
            lambda session: ModelChangeRepository(session).newest(_REMEMBERED_CHANGES)
        )
        named = {version for it in changes for version in (it.version, it.previous_version)}
        return {version for version in named if version is not None}
