"""A retraining job: its settings, its phases, and the interfaces of its records and progress."""

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal, Protocol, final

from model import clock
from model.clock import to_datetime
from model.errors import TrainingError
from model.store.store import BundleStore
from training.config import NOT_FITTED, RunConfig
from training.data.sources import format_location
from training.data.split import ByTimeConfig
from training.run import Progress

Phase = Literal["read", "fit", "evaluate", "write", "gate", "publish", "activate", "prune"]
"""`read` the events; `fit` to their training part; `evaluate` challenger, champion and references;
`write` the bundle, refitted if `fit.refit` is set; apply the `gate`; `publish` and `activate` the
version; `prune` old versions and runs."""


@dataclass(frozen=True)
class RetrainingJob:
    """The settings of one run of the job.

    Attributes:
        recipe: name of the recipe.
        events: as for `training.data.sources.read_events`.
        items: as for `training.data.sources.read_items`.
        database: the service's, which holds the erased users; None if there is none.
        until: later events are left out; epoch microseconds.
        known_by: events that arrived later are left out, where the source records arrival; epoch
            microseconds.
        warm_start: begin from the champion's weights, if there is a champion.
        promotes: whether a challenger that passes the gate is published and activated.
        keep: afterwards, remove all but so many versions and runs; None removes nothing.
    """

    config: RunConfig
    recipe: str
    events: str
    items: str | None
    until: int
    known_by: int
    database: str | None = None
    warm_start: bool = False
    promotes: bool = True
    keep: int | None = None

    def require_split_by_time(self) -> None:
        """Refuse a split that would measure the model on events older than its training events.

        Raises:
            TrainingError: if the recipe does not split by time.
        """
        if not isinstance(self.config.split, ByTimeConfig):
            raise TrainingError(
                'split.kind must be "by_time", so that a challenger is evaluated on the latest '
                f"events, but is {self.config.split.kind!r}; change it in the recipe"
            )

    def format_directory_name(self, champion: str | None) -> str:
        """Return the run's directory: equal jobs share it, so that a killed run resumes."""
        identity = (
            self.config.model_dump_json(exclude={*NOT_FITTED}),
            format_location(self.events),
            self.items is None or format_location(self.items),
            self.until,
            self.known_by,
            champion if self.warm_start else None,
        )
        digest = hashlib.sha256(repr(identity).encode()).hexdigest()[:8]
        return f"{to_datetime(self.until):%Y%m%dT%H%M%SZ}-{self.recipe}-{digest}"


class Journal(Protocol):
    """Records runs and activations; implemented by the service on its database."""

    def now(self) -> int:
        """Return the time by which runs are recorded, epoch microseconds."""

    def begin(
        self, run_id: str, *, started_at: int, champion: str | None, report: dict[str, Any]
    ) -> None:
        """Record a new run, and mark every run still recorded as running as abandoned.

        Args:
            started_at: epoch microseconds.
        """

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
        """Record a run's result. `report` is `RunReport` as JSON."""

    def record_progress(self, run_id: str, progress: dict[str, Any]) -> None:
        """Record how far a running run is; may fail silently. `progress` is `RunProgress`."""

    def activate(self, version: str, reason: str) -> None:
        """Open a published version, make it current and record that, atomically."""

    def list_recently_served(self) -> Collection[str]:
        """List the versions that an operator may want to roll back to."""


@final
class NoJournal:
    """For runs without the service's database; their directory is the only record."""

    def __init__(self, store: BundleStore) -> None:
        self._store = store

    def now(self) -> int:
        """Return this machine's time."""
        return clock.now()

    def begin(self, run_id: str, **_: object) -> None:
        """Record nothing."""

    def finish(self, run_id: str, **_: object) -> None:
        """Record nothing."""

    def record_progress(self, run_id: str, progress: dict[str, Any]) -> None:
        """Record nothing."""

    def activate(self, version: str, reason: str) -> None:  # noqa: ARG002 - nothing records it
        """Open the version, and move the store's pointer to it."""
        self._store.open(version)
        with self._store.lock_pointers():
            self._store.activate(version)

    def list_recently_served(self) -> Collection[str]:
        """Return no versions: the store keeps no history of activations."""
        return ()


class RetrainingProgress(Progress, Protocol):
    """Receives the progress of a retraining run."""

    def start_phase(self, phase: Phase) -> None:
        """Report that a phase begins."""
